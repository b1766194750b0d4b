//! The hosts of a connection string of libpq.

use std::ffi::CString;

/// One of the hosts of a connection string. What is `None` is as the string says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name, for `host`.
    pub name: Option<CString>,
    /// Its address, for `hostaddr`.
    pub address: Option<CString>,
    /// Its port.
    pub port: Option<CString>,
}

impl Host {
    /// The hosts of libpq's lists, in their order; none if the lists name one host at most. None either if an element is empty, which
    /// cannot be passed by itself, or the lists do not fit: libpq then deals with them as a whole.
    pub fn of_lists(names: &str, addresses: &str, ports: &str) -> Vec<Host> {
        let lists = [names, addresses, ports].map(|list| list.split(',').collect::<Vec<_>>());
        let count = lists[0].len().max(lists[1].len());
        let is_absent = |list: &[&str]| list == [""];
        let fits = |list: &Vec<&str>| is_absent(list) || (list.len() == count && list.iter().all(|element| !element.is_empty()));
        let [names, addresses, ports] = &lists;
        let has_one_port = ports.len() == 1;
        if count < 2 || !fits(names) || !fits(addresses) || !(has_one_port || fits(ports)) {
            return Vec::new();
        }
        let element = |list: &[&str], place: usize| {
            let value = list.get(place).or(list.first()).filter(|value| !value.is_empty())?;
            CString::new(*value).ok()
        };
        let host = |place| Host { name: element(names, place), address: element(addresses, place), port: element(ports, place) };
        (0..count).map(host).collect()
    }

    /// What the connection string calls it.
    pub fn title(&self) -> String {
        let title = self.name.as_deref().or(self.address.as_deref());
        title.map(|title| title.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_a_connection_string_are_tried_in_their_order() {
        let hosts = |names, addresses, ports| -> Vec<String> {
            let shown = |host: Host| {
                let part = |part: Option<CString>| part.map_or("-".into(), |part| part.into_string().unwrap());
                format!("{} {} {}", part(host.name), part(host.address), part(host.port))
            };
            Host::of_lists(names, addresses, ports).into_iter().map(shown).collect()
        };
        assert!(hosts("", "", "5432").is_empty());
        assert!(hosts("one", "10.0.0.1", "5432").is_empty());
        assert_eq!(hosts("one,two", "", "5432"), ["one - 5432", "two - 5432"]);
        assert_eq!(hosts("one,two", "", "1,2"), ["one - 1", "two - 2"]);
        assert_eq!(hosts("", "10.0.0.1,::1", ""), ["- 10.0.0.1 -", "- ::1 -"]);
        assert_eq!(hosts("one,two", "10.0.0.1,::1", "7"), ["one 10.0.0.1 7", "two ::1 7"]);
        for as_a_whole in [("one,", "", "7"), ("one,two", "", "1,"), ("one", "10.0.0.1,::1", "7")] {
            let (names, addresses, ports) = as_a_whole;
            assert!(hosts(names, addresses, ports).is_empty(), "{as_a_whole:?}");
        }
    }
}
