//! Whether a PostgreSQL is built as distributions build it. Without OpenSSL or optimization it is slower than what users have, and
//! its figures would be wrong for them.

use pg_snowflake_harness::{Cluster, installation};
use postgres::Client;

/// What a distribution's server has: the name, and the options of `./configure` that add it.
const FEATURES: [(&str, &[&str]); 5] = [
    ("OpenSSL", &["--with-ssl=openssl", "--with-openssl"]),
    (ICU, &["--with-icu"]),
    ("LZ4", &["--with-lz4"]),
    ("Zstandard", &["--with-zstd"]),
    ("libxml", &["--with-libxml"]),
];

/// From 16 on, `./configure` adds it unless `--without-icu` is among its options.
const ICU: &str = "ICU";

/// What a running server says about the features, in their order, and about assertions.
#[derive(Debug)]
struct Server {
    has: [bool; FEATURES.len()],
    has_assertions: bool,
}

/// What the installation under test lacks, each as the name and how that is known. Starts a server.
pub fn lacking() -> Vec<String> {
    let text = |option| installation::pg_config(option).to_string_lossy().into_owned();
    let major = installation::major(installation::bindir());
    let server = Server::ask(&mut Cluster::new().connect());
    what_lacks(major, &text("--configure"), &text("--cflags"), &server)
}

/// For people.
pub fn note(lacking: &[String]) -> String {
    format!("This PostgreSQL lacks what a distribution's has: {}.", lacking.join("; "))
}

/// What a build lacks, by the output of `pg_config` and the answers of its server. Either may be wrong for the other: `pg_config` may be that of
/// other packages.
///
/// Meson records no options, so for its builds the server's answers decide. It does not record the level of optimization
/// either: that is then unknown, and named.
fn what_lacks(major: u32, configure: &str, cflags: &str, server: &Server) -> Vec<String> {
    let options: Vec<&str> = configure.split('\'').skip(1).step_by(2).collect();
    let mut lacking = Vec::new();
    for ((name, adding), has) in FEATURES.into_iter().zip(server.has) {
        let is_default = name == ICU && major >= 16 && !options.contains(&"--without-icu");
        if !has {
            lacking.push(format!("{name} (the server has none)"));
        } else if !options.is_empty()
            && !is_default
            && !adding.iter().any(|option| options.contains(option))
        {
            lacking
                .push(format!("{name} (pg_config --configure: without {})", adding.join(" or ")));
        }
    }
    if server.has_assertions {
        lacking.push("a server without assertions (debug_assertions is on)".to_owned());
    } else if options.contains(&"--enable-cassert") {
        lacking.push(
            "a server without assertions (pg_config --configure: --enable-cassert)".to_owned(),
        );
    }
    // The last one counts.
    let level = cflags.split_whitespace().rfind(|flag| flag.starts_with("-O"));
    match level {
        Some("-O2" | "-O3") => {}
        Some(level) => lacking.push(format!("-O2 (pg_config --cflags: {level})")),
        None => lacking.push("-O2 (pg_config --cflags: no -O)".to_owned()),
    }
    lacking
}

impl Server {
    fn ask(client: &mut Client) -> Self {
        let offers = |value: &str, setting: &str| {
            format!(
                "EXISTS (SELECT FROM pg_settings WHERE name = '{setting}' AND '{value}' = ANY (enumvals))"
            )
        };
        let answers = format!(
            "SELECT current_setting('ssl_library') = 'OpenSSL',
                    EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i'),
                    {}, {},
                    current_setting('debug_assertions')::bool",
            offers("lz4", "default_toast_compression"),
            offers("zstd", "wal_compression"),
        );
        let row = client.query_one(&answers, &[]).expect("every server has these settings");
        // Without libxml, the type rejects every value.
        let has_xml = client.batch_execute("SELECT '<a/>'::xml").is_ok();
        let [openssl, icu, lz4, zstd, has_assertions] =
            [0, 1, 2, 3, 4].map(|column| row.get(column));
        Server { has: [openssl, icu, lz4, zstd, has_xml], has_assertions }
    }
}

#[cfg(test)]
mod tests {
    use super::{Server, what_lacks};

    const DEBIAN_15: &str = "'--prefix=/usr' '--with-openssl' '--with-libxml' '--with-libxslt' '--enable-debug' '--with-uuid=e2fs' \
        '--with-extra-version= (Debian 15.20-0+deb12u1)' 'CFLAGS=-g -O2 -fno-omit-frame-pointer' '--enable-tap-tests' '--with-icu' \
        '--with-llvm' '--with-lz4' '--with-zstd' 'CPPFLAGS=-Wdate-time -D_FORTIFY_SOURCE=2'";

    const CFLAGS: &str = "-Wall -fno-strict-aliasing -fwrapv -g -g -O2 -fno-omit-frame-pointer";

    fn complete() -> Server {
        Server { has: [true; 5], has_assertions: false }
    }

    #[test]
    fn a_package_of_debian_lacks_nothing() {
        let none: [&str; 0] = [];
        assert_eq!(what_lacks(15, DEBIAN_15, CFLAGS, &complete()), none);
        let with_ssl = DEBIAN_15.replace("--with-openssl", "--with-ssl=openssl");
        assert_eq!(what_lacks(19, &with_ssl, &CFLAGS.replace("-O2", "-O3"), &complete()), none);
    }

    #[test]
    fn each_missing_option_is_named() {
        let cases = [
            (
                "--with-openssl",
                "OpenSSL (pg_config --configure: without --with-ssl=openssl or --with-openssl)",
            ),
            ("--with-icu", "ICU (pg_config --configure: without --with-icu)"),
            ("--with-lz4", "LZ4 (pg_config --configure: without --with-lz4)"),
            ("--with-zstd", "Zstandard (pg_config --configure: without --with-zstd)"),
            ("--with-libxml", "libxml (pg_config --configure: without --with-libxml)"),
        ];
        for (option, lacks) in cases {
            let without = DEBIAN_15.replace(&format!("'{option}'"), "");
            assert_eq!(what_lacks(15, &without, CFLAGS, &complete()), [lacks]);
        }
        assert_eq!(what_lacks(15, "'--prefix=/opt'", CFLAGS, &complete()).len(), cases.len());
    }

    #[test]
    fn icu_is_the_default_from_16_on() {
        let without = DEBIAN_15.replace("'--with-icu'", "");
        assert!(what_lacks(16, &without, CFLAGS, &complete()).is_empty());
        let refused = DEBIAN_15.replace("--with-icu", "--without-icu");
        assert_eq!(what_lacks(16, &refused, CFLAGS, &complete()).len(), 1);
    }

    #[test]
    fn the_last_level_of_optimization_counts() {
        let lacking = |cflags| what_lacks(15, DEBIAN_15, cflags, &complete());
        assert_eq!(lacking("-g -O2 -Wall -O0"), ["-O2 (pg_config --cflags: -O0)"]);
        assert_eq!(lacking("-g -Og"), ["-O2 (pg_config --cflags: -Og)"]);
        assert_eq!(lacking("-g -Wall"), ["-O2 (pg_config --cflags: no -O)"]);
        assert!(lacking("-O0 -O2").is_empty());
    }

    #[test]
    fn assertions_are_found_in_either_source() {
        let asserting = format!("{DEBIAN_15} '--enable-cassert'");
        for (configure, has_assertions) in [(asserting.as_str(), false), (DEBIAN_15, true)] {
            let server = Server { has_assertions, ..complete() };
            let lacking = what_lacks(18, configure, CFLAGS, &server);
            assert!(lacking.len() == 1 && lacking[0].contains("assertions"), "{lacking:?}");
        }
    }

    #[test]
    fn the_server_is_asked_even_if_its_options_name_a_feature() {
        let server = Server { has: [false, true, true, true, false], has_assertions: false };
        assert_eq!(
            what_lacks(18, DEBIAN_15, CFLAGS, &server),
            ["OpenSSL (the server has none)", "libxml (the server has none)"]
        );
    }

    #[test]
    fn the_server_decides_for_a_build_by_meson_which_records_no_options() {
        assert!(what_lacks(19, "", CFLAGS, &complete()).is_empty());
        let server = Server { has: [true, true, false, true, true], has_assertions: false };
        assert_eq!(what_lacks(19, "", CFLAGS, &server), ["LZ4 (the server has none)"]);
    }
}
