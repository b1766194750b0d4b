//! Lists of shards, such as `5` or `0-127, 300`.

use super::list::{InvalidSetting, check_length, elements, with_room};
use crate::homed::Class;
use pg_snowflake_ids::excerpt::excerpt;

/// The highest shard ID in SQL, where it is an `int`.
const MAX_SHARD: u32 = i32::MAX as u32;

const HINT: &str = "Specify shard IDs and ranges, separated by commas, such as \"5\" or \"0-127, 300\". \
                       An empty string allows all shards.";

/// The shards from `first` to `last`, inclusive.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The lowest.
    pub first: u32,
    /// The highest.
    pub last: u32,
}

/// The shards that `text` lists, as ascending ranges with gaps between them; none if it is empty. `room` makes an empty list for so many
/// elements; `None` if memory is short.
pub fn parse(text: &str, room: impl FnOnce(usize) -> Option<Vec<Range>>) -> Result<Vec<Range>, InvalidSetting> {
    check_length(text, HINT)?;
    let mut ranges = with_room(text, HINT, room)?;
    for element in elements(text) {
        ranges.push(parse_range(element)?);
    }
    ranges.sort_unstable();
    ranges.dedup_by(|later, earlier| {
        let touches = later.first <= earlier.last.saturating_add(1);
        if touches {
            earlier.last = earlier.last.max(later.last);
        }
        touches
    });
    Ok(ranges)
}

/// Whether the ascending ranges contain the shard.
pub fn contains(ranges: &[Range], shard: u32) -> bool {
    let after = ranges.partition_point(|range| range.first <= shard);
    after.checked_sub(1).is_some_and(|index| shard <= ranges[index].last)
}

/// The first shard of the class that the ranges do not have.
pub fn first_missing(ranges: &[Range], class: Class) -> Option<u32> {
    let Class { first, step, last } = class;
    let mut next = Some(first);
    for range in ranges {
        let shard = next?;
        if shard < range.first {
            break;
        }
        if shard <= range.last {
            let past = (range.last - shard) / step + 1;
            let after = past.checked_mul(step).and_then(|distance| shard.checked_add(distance));
            next = after.filter(|&shard| shard <= last);
        }
    }
    next
}

fn parse_range(element: &str) -> Result<Range, InvalidSetting> {
    if element.is_empty() {
        return invalid("The list has an empty element.".into());
    }
    if element.starts_with('-') {
        return invalid(format!("\"{}\" is negative, or lacks the first shard of its range.", excerpt(element)));
    }
    let Some((first, last)) = element.split_once('-') else {
        let shard = parse_shard(element)?;
        return Ok(Range { first: shard, last: shard });
    };
    if last.trim().is_empty() {
        return invalid(format!("\"{}\" lacks the last shard of its range.", excerpt(element)));
    }
    let range = Range { first: parse_shard(first.trim())?, last: parse_shard(last.trim())? };
    if range.first > range.last {
        return invalid(format!("\"{}\" ends before it begins.", excerpt(element)));
    }
    Ok(range)
}

fn parse_shard(text: &str) -> Result<u32, InvalidSetting> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return invalid(format!("\"{}\" is not a shard ID.", excerpt(text)));
    }
    match text.parse() {
        Ok(shard) if shard <= MAX_SHARD => Ok(shard),
        _ => invalid(format!("\"{}\" is too large: the highest shard ID is {MAX_SHARD}.", excerpt(text))),
    }
}

fn invalid<T>(detail: String) -> Result<T, InvalidSetting> {
    Err(InvalidSetting { detail, hint: HINT })
}

#[cfg(test)]
mod tests {
    use super::{InvalidSetting, MAX_SHARD, Range, contains, first_missing};
    use crate::homed::Class;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Vec<Range>, InvalidSetting> {
        super::parse(text, |count| Some(Vec::with_capacity(count)))
    }

    fn parsed(text: &str) -> Vec<(u32, u32)> {
        let ranges = parse(text).unwrap_or_else(|invalid| panic!("{text:?}: {invalid:?}"));
        ranges.iter().map(|range| (range.first, range.last)).collect()
    }

    #[test]
    fn shards_and_ranges_are_parsed() {
        let cases: [(&str, &[(u32, u32)]); 9] = [
            ("", &[]),
            ("5", &[(5, 5)]),
            ("0-127,300", &[(0, 127), (300, 300)]),
            (" 0 - 127 , 300 ", &[(0, 127), (300, 300)]),
            ("300,0-127", &[(0, 127), (300, 300)]),
            ("7,5,6", &[(5, 7)]),
            ("0-9,3-4,5-20", &[(0, 20)]),
            ("007", &[(7, 7)]),
            ("2147483647", &[(MAX_SHARD, MAX_SHARD)]),
        ];
        for (text, ranges) in cases {
            assert_eq!(parsed(text), ranges, "{text:?}");
        }
    }

    /// Beside those whose whole errors the script `fences` has.
    #[test]
    fn a_text_that_almost_is_a_list_is_refused() {
        for text in ["-", "1-2-3", "5 6", "+5", "5--6", "２", "99999999999999999999"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_list_contains_exactly_its_shards_and_misses_the_first_other_one_of_a_class(
            ends in prop::collection::vec((0_u32..60, 0_u32..8), 1..8),
            shard in 0_u32..80,
            (first, step, count) in (0_u32..20, 1_u32..9, 0_u32..9),
        ) {
            let text: Vec<String> =
                ends.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
            let ranges = parse(&text.join(",")).unwrap();
            let is_listed = ends.iter().any(|&(first, more)| (first..=first + more).contains(&shard));
            prop_assert_eq!(contains(&ranges, shard), is_listed);
            let has_gaps = |pair: &[Range]| pair[0].last + 1 < pair[1].first;
            prop_assert!(ranges.windows(2).all(has_gaps), "{:?}", ranges);
            let class = Class { first, step, last: first + step * count };
            let searched = class.shards().find(|&shard| !contains(&ranges, shard));
            prop_assert_eq!(first_missing(&ranges, class), searched);
        }
    }

    #[test]
    fn the_highest_shards_are_not_missed() {
        let all = parse("0-2147483647").unwrap();
        let class = |first, step, last| Class { first, step, last };
        assert_eq!(first_missing(&all, class(0, 1, MAX_SHARD)), None);
        assert_eq!(first_missing(&all, class(0, MAX_SHARD, MAX_SHARD)), None);
        assert_eq!(first_missing(&all[..0], class(MAX_SHARD, 1, MAX_SHARD)), Some(MAX_SHARD));
    }
}
