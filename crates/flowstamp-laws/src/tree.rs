//! Deserialises types from a tree of values, with errors that name the key.
//!
//! Parsers of text build a tree, from which the parameters of laws and the scenario's types are deserialised. Structs
//! are always tables. This small deserialiser replaces serde's buffer for tagged enums and `toml`'s values, which
//! would make up most of the WebAssembly code that reads a scenario.

mod error;

pub use error::{Error, nearest};

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use std::fmt;

/// A value of text such as TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// Text.
    String(String),
    /// A value of a kind that no type accepts, such as a date or null, with the kind's name.
    Other(&'static str),
    /// Values in their order.
    Array(Vec<Value>),
    /// Values by key.
    Table(Table),
}

impl Value {
    /// The text, if it is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value under `key`, if this is a table with that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Table(table) => table.get(key),
            _ => None,
        }
    }
}

/// Values by key, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(String, Value)>);

impl Table {
    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    /// The value under `key`, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    /// Sets the value under `key`, and returns the value that was there.
    pub fn insert(&mut self, key: &str, value: Value) -> Option<Value> {
        match self.get_mut(key) {
            Some(old) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((key.to_owned(), value));
                None
            }
        }
    }

    /// The value under `key`; inserts an empty table if there is none.
    pub fn or_table(&mut self, key: &str) -> &mut Value {
        let at = self.0.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
            self.0.push((key.to_owned(), Value::Table(Self::default())));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Removes and returns the value under `key`.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }
}

impl FromIterator<(String, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl IntoIterator for Table {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// JSON's null, as messages call it.
const NULL: Value = Value::Other("nothing");

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
                Ok(Value::Boolean(truth))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Integer(number))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
                let too_large =
                    |_| E::custom(format_args!("{number} is too large; it must be at most {}", i64::MAX));
                i64::try_from(number).map(Value::Integer).map_err(too_large)
            }
            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::String(text.to_owned()))
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(NULL)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut array = Vec::new();
                while let Some(item) = items.next_element()? {
                    array.push(item);
                }
                Ok(Value::Array(array))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                table(map).map(Value::Table)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Builds a table from a map. A key whose value is null, Python's `None`, counts as absent.
///
/// # Errors The map's first entry that cannot be a value.
pub fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Table, A::Error> {
    let mut table = Vec::new();
    while let Some((key, value)) = map.next_entry()? {
        if value != NULL {
            table.push((key, value));
        }
    }
    Ok(Table(table))
}

/// A deserialiser of a value.
#[derive(Clone, Copy)]
pub struct Tree<'a>(pub &'a Value);

impl Tree<'_> {
    /// The kind of the value, for error messages.
    #[must_use]
    pub fn unexpected(&self) -> Unexpected<'_> {
        match self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(truth) => Unexpected::Bool(*truth),
            Value::Other(name) => Unexpected::Other(name),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, expected: &dyn Expected) -> Error {
        Error::invalid_type(self.unexpected(), expected)
    }

    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            _ => Err(self.refuse(&visitor)),
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_str(text),
            _ => Err(self.refuse(&visitor)),
        }
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut left = Items { items: items.iter(), at: 0 };
                let made = visitor.visit_seq(&mut left)?;
                if left.at < items.len() { Err(too_long(items.len(), left.at)) } else { Ok(made) }
            }
            _ => Err(self.refuse(&visitor)),
        }
    }

    fn table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Table(table) => visitor.visit_map(Entries { entries: table.0.iter(), now: None }),
            _ => Err(self.refuse(&visitor)),
        }
    }
}

#[cold]
#[inline(never)]
fn too_long(length: usize, most: usize) -> Error {
    Error::custom(format_args!("a list of {length} must be a list of {most}"))
}

macro_rules! as_ {
    ($kind:ident: $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> { self.$kind(visitor) })*
    };
}

impl<'de> Deserializer<'de> for Tree<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_str(text),
            Value::Array(_) => self.list(visitor),
            Value::Table(_) => self.table(visitor),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            _ => self.number(visitor),
        }
    }

    as_! { number:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }
    as_! { text:
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_identifier deserialize_unit
    }
    as_! { list: deserialize_seq }
    as_! { table: deserialize_map }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            _ => Err(self.refuse(&visitor)),
        }
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.text(visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.list(visitor)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.table(visitor)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(StrDeserializer::new(name)),
            _ => Err(self.refuse(&visitor)),
        }
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

impl IntoDeserializer<'_, Error> for Tree<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        match seed.deserialize(Tree(item)) {
            Ok(item) => Ok(Some(item)),
            Err(e) => Err(e.located(item).at(at)),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, (String, Value)>,
    /// The entry whose key was returned last.
    now: Option<&'a (String, Value)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.now = self.entries.next();
        let Some((key, _)) = self.now else { return Ok(None) };
        match seed.deserialize(StrDeserializer::<Error>::new(key)) {
            Ok(found) => Ok(Some(found)),
            Err(e) => Err(e.under(key)),
        }
    }
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let Some((key, value)) = self.now else { return Err(Error::custom("a value without a key")) };
        match seed.deserialize(Tree(value)) {
            Ok(made) => Ok(made),
            Err(e) => Err(e.located(value).under(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RouterSpec;
    use crate::units::{Rate, Time};

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Link {
        rate: Rate,
        #[serde(default)]
        delays: Vec<Time>,
        router: Option<RouterSpec>,
    }

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    enum Traffic {
        Frames { fps: f64, gap: Time, sizes: Option<Box<Traffic>> },
    }

    #[test]
    fn errors_in_tagged_tables_name_the_key() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only errors are looked at")]
        struct Group {
            up: Traffic,
        }
        let up = |traffic: Value| Group::deserialize(Tree(&table([("up", traffic)])));
        let frames = |fps, gap, more: Option<(&str, Value)>| {
            let entries = [("kind", text("frames")), ("fps", fps), ("gap", gap)].into_iter().chain(more);
            up(Value::Table(entries.map(|(key, value)| (key.to_owned(), value)).collect()))
        };
        let fine = || (Value::Float(30.0), text("1ms"));
        let inner = |fps| table([("kind", text("frames")), ("fps", fps), ("gap", text("2ms"))]);
        for (key, message, wrong) in [
            ("up.fps", "\"x\" must be a number", frames(text("x"), fine().1, None)),
            ("up.gap", "30 must be a time", frames(fine().0, Value::Integer(30), None)),
            ("up.gap", "\"30\" has no unit", frames(fine().0, text("30"), None)),
            ("up.fpss", "unknown key `fpss`", frames(fine().0, fine().1, Some(("fpss", Value::Integer(1))))),
            (
                "up.sizes.fps",
                "\"y\" must be a number",
                frames(fine().0, fine().1, Some(("sizes", inner(text("y"))))),
            ),
            // The same wrong value twice: either may be meant.
            ("up", "\"x\"", frames(text("x"), text("x"), None)),
            ("up.kind", "there is no `frame`", up(table([("kind", text("frame"))]))),
            ("up", "`kind` is missing", up(table([]))),
        ] {
            let error = wrong.expect_err(message);
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(error.key(), key, "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_under_its_key() {
        let link = |rate, delays, router| {
            Link::deserialize(Tree(&table([
                ("rate", rate),
                ("delays", Value::Array(delays)),
                ("router", router),
            ])))
        };
        let good = link(
            text("5Mbps"),
            vec![text("1ms")],
            table([("alpha", Value::Integer(1)), ("law", text("xcp"))]),
        );
        let good = good.expect("a link");
        assert_eq!((good.rate, &good.delays[..]), (Rate::from_mbps(5.0), &[Time::from_millis(1)][..]));
        assert!(matches!(good.router, Some(RouterSpec::Xcp(params)) if params.alpha == 1.0));
        let fine = || (text("5Mbps"), vec![text("1ms")], text("xcp"));
        for (key, message, wrong) in [
            ("rate", "5 must be a rate", link(Value::Integer(5), fine().1, fine().2)),
            ("delays[1]", "lots", link(fine().0, vec![text("1ms"), text("lots")], fine().2)),
            (
                "router.omega",
                "unknown key `omega`",
                link(fine().0, fine().1, table([("law", text("xcp")), ("omega", text("1"))])),
            ),
            (
                "router.alpha",
                "\"a\" must be a number",
                link(fine().0, fine().1, table([("alpha", text("a")), ("law", text("xcp"))])),
            ),
            ("router", "`law` is missing", link(fine().0, fine().1, table([("alpha", Value::Float(0.3))]))),
            ("router", "there is no `cubic`", link(fine().0, fine().1, text("cubic"))),
            ("", "`rate` is missing", Link::deserialize(Tree(&table([])))),
            ("speed", "unknown key `speed`", Link::deserialize(Tree(&table([("speed", text("5Mbps"))])))),
            ("", "a list must be a table", Link::deserialize(Tree(&Value::Array(vec![fine().0])))),
        ] {
            let error = wrong.expect_err(message);
            assert_eq!(error.key(), key);
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
