//! Properties that hold on any input. The tests and the fuzz targets search for inputs that violate them. A `check` panics if one does
//! not hold.

pub mod base32;
pub mod ids;
pub mod inputs;
pub mod layout_parts;
pub mod layout_text;
pub mod uuid;

#[cfg(test)]
mod tests {
    use super::{ids, inputs::hold, layout_parts, uuid};

    #[test]
    fn properties_of_ids() {
        hold(ids::check);
    }

    #[test]
    fn properties_of_layouts() {
        hold(layout_parts::check);
    }

    #[test]
    fn properties_of_uuids() {
        hold(uuid::check);
    }
}
