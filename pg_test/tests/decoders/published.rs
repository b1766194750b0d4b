//! IDs that others have published together with their fields.

use pg_snowflake_harness::ask::{printed, server};

/// An ID that somebody published together with its fields.
struct Published {
    /// Title and address of the page.
    source: &'static str,
    id: i64,
    layout: &'static str,
    /// The time in UTC, as precise as the page states it.
    at: &'static str,
    shard: Option<i32>,
    seq: Option<i32>,
}

/// pgEdge's first order of the fields, which its version 1.2 changed. The examples in its documentation have the first
/// order.
const PGEDGE_BEFORE_1_2: &str = "time:41 seq:12 shard:10 epoch:2023-01-01 unit:1ms";

const PUBLISHED: &[Published] = &[
    Published {
        source: "X Developer Platform, Tweet object, https://developer.x.com/overview/api/tweets",
        id: 1_050_118_621_198_921_728,
        layout: "twitter",
        at: "2018-10-10 20:19:24",
        shard: None,
        seq: None,
    },
    Published {
        source: "Wikipedia, Snowflake ID, https://en.wikipedia.org/wiki/Snowflake_ID",
        id: 1_541_815_603_606_036_480,
        layout: "twitter",
        at: "2022-06-28 16:07:40.105",
        shard: Some(378),
        seq: Some(0),
    },
    Published {
        source: "Discord developer documentation, Snowflakes, https://docs.discord.com/developers/reference",
        id: 175_928_847_299_117_063,
        layout: "discord",
        at: "2016-04-30 11:18:25.796",
        shard: Some(1 << 5), // worker 1, process 0
        seq: Some(7),
    },
    Published {
        source: "discord-snowflake (a package for Node), README, Usage",
        id: 90_339_695_967_350_784,
        layout: "discord",
        at: "2015-09-07 06:57:41.949",
        shard: Some(3), // worker 0, process 3
        seq: Some(0),
    },
    Published {
        // The page's created_at, 03:48:33.901, is taken 52 ms after the ID.
        source: "Mastodon documentation, Status, https://docs.joinmastodon.org/entities/Status",
        id: 103_270_115_826_048_975,
        layout: "mastodon",
        at: "2019-12-08 03:48:33",
        shard: Some(0),
        seq: None,
    },
    Published {
        // 1387263000 ms after the epoch 1314220021721; user 31341 of 2000 shards; the table's 5001st ID.
        source: "Instagram Engineering, Sharding & IDs at Instagram, \
                 https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c",
        id: 1_387_263_000 << 23 | 1341 << 10 | (5001 % 1024),
        layout: "instagram",
        at: "2011-09-09 22:28:04.721",
        shard: Some(31341 % 2000),
        seq: Some(905),
    },
    Published {
        source: "Stack Overflow, question 63683015, https://stackoverflow.com/questions/63683015",
        id: 2_384_288_897_814_875_714,
        layout: "instagram",
        at: "2020-08-26 13:43:27",
        shard: None,
        seq: None,
    },
    Published {
        source: "Stack Overflow, question 63683015, https://stackoverflow.com/questions/63683015",
        id: 2_383_568_809_444_681_765,
        layout: "instagram",
        at: "2020-08-25 13:52:46",
        shard: None,
        seq: None,
    },
    Published {
        source: "Unfurl, test of its Sonyflake parser, https://github.com/obsidianforensics/unfurl",
        id: 0x45e_ec4a_4600_041b,
        layout: "sonyflake",
        at: "2020-08-12 17:35:29.98",
        shard: Some(4 << 8 | 27), // machine 4.27
        seq: None,
    },
    Published {
        // A dialect of Sonyflake whose unit is 1 ms.
        source: "sonyflake for TypeScript, README, https://github.com/thedv91/sonyflake",
        id: 1_211_144_891_006_978,
        layout: "time:39 seq:8 shard:16 epoch:2020-05-18 unit:1ms",
        at: "2020-05-18 20:03:09.861", // 1589832189861
        shard: Some(2),
        seq: Some(0),
    },
    Published {
        // get_epoch() returns 1704996539.845.
        source: "pgEdge documentation, Snowflake functions, https://docs.pgedge.com/snowflake/snowflake_functions",
        id: 136_169_504_773_242_881,
        layout: "pgedge",
        at: "2024-01-11 18:08:59.845",
        shard: None,
        seq: None,
    },
    Published {
        source: "pgEdge documentation, Snowflake functions, https://docs.pgedge.com/snowflake/snowflake_functions",
        id: 136_169_504_773_242_881,
        layout: PGEDGE_BEFORE_1_2,
        at: "2024-01-11 18:08:59.845",
        shard: Some(1),
        seq: None, // the page states 0 in one place and 3 in another
    },
    Published {
        source: "pgEdge snowflake, Converting a sequence, https://github.com/pgEdge/snowflake, docs/converting.md",
        id: 135_824_181_823_537_153,
        layout: PGEDGE_BEFORE_1_2,
        at: "2024-01-10 19:16:48.438",
        shard: Some(1),
        seq: Some(0),
    },
    Published {
        // The page states no time; it was committed on the day of the ID's time.
        source: "pgEdge snowflake, Hibernate, https://github.com/pgEdge/snowflake, hibernate.md",
        id: 170_505_378_935_607_296,
        layout: "pgedge",
        at: "2024-04-15",
        shard: None,
        seq: None,
    },
    Published {
        // 11405873126 ms after the epoch 1764184395000; node 42, the second ID of the millisecond.
        source: "PgDog, test_regression_fixed_clock_ids, https://github.com/pgdogdev/pgdog, pgdog/src/unique_id.rs",
        id: 47_839_699_276_046_337,
        layout: "pgdog",
        at: "2026-04-07 19:31:08.126",
        shard: Some(42),
        seq: Some(1),
    },
];

#[test]
fn a_published_id_decodes_to_its_published_fields() {
    let (_cluster, mut client) = server();
    for Published { source, id, layout, at, shard, seq } in PUBLISHED {
        let sql = format!("SELECT * FROM snowflake_decode({id}, '{layout}')");
        let row = printed(&mut client, &sql);
        let found: Vec<&str> = row.split('|').collect();
        assert!(found[0].starts_with(at), "{source}: {row}, not at {at}");
        for (published, found) in [(shard, found[1]), (seq, found[2])] {
            assert!(
                published.is_none_or(|field| field.to_string() == found),
                "{source}: {row}, not {published:?}"
            );
        }
    }
}
