//! Properties that hold on any input. The tests and the fuzz targets search for inputs that violate them. A `check` panics if one does
//! not hold.

pub mod clock;
pub mod counter;
pub mod homed;

#[cfg(test)]
mod tests {
    use super::{clock, counter, homed};
    use pg_snowflake_ids::properties::inputs::hold;

    #[test]
    fn properties_of_clocks() {
        hold(clock::check);
    }

    #[test]
    fn properties_of_counters() {
        hold(counter::check);
    }

    #[test]
    fn properties_of_homed_ids() {
        hold(homed::check);
    }
}
