//! From a tree of values to types, with the key under which something is wrong.
//!
//! What reads text makes a tree of it; parameters of laws and the scenario's types are made of that. Structs are tables and
//! nothing else: what serde's own buffer for tagged enums and `toml`'s values offer beyond that is most of what a browser would
//! fetch to read a scenario.

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
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
    /// Of what no type is made, by its name.
    Other(&'static str),
    /// Values in their order.
    Array(Vec<Value>),
    /// Values by key.
    Table(Table),
}

/// Values by key, in their order.
pub type Table = Vec<(String, Value)>;

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
                i64::try_from(number)
                    .map(Value::Integer)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Float(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::String(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Value, E> {
                Ok(Value::String(text))
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
                Value::deserialize(deserializer)
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

/// A table of what a map has.
///
/// # Errors
/// What cannot be a value.
pub fn table<'de, A: MapAccess<'de>>(mut map: A) -> Result<Table, A::Error> {
    let mut table = Vec::new();
    while let Some(entry) = map.next_entry()? {
        table.push(entry);
    }
    Ok(table)
}

/// What is wrong, and where.
#[derive(Debug)]
pub struct Error {
    /// From the innermost part outwards: `.key` or `[index]`.
    path: Vec<String>,
    /// What is wrong.
    pub message: String,
}

impl Error {
    fn within(mut self, part: String) -> Self {
        self.path.push(part);
        self
    }

    /// The key, such as `flows[0].rate`; empty for the whole.
    #[must_use]
    pub fn key(&self) -> String {
        let key: String = self.path.iter().rev().map(String::as_str).collect();
        key.strip_prefix('.').map_or(key.clone(), str::to_owned)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: Vec::new(), message: message.to_string() }
    }
}

/// A value to be made a type.
pub struct Tree(pub Value);

impl Tree {
    /// What it is, for who expected something else.
    #[must_use]
    pub fn unexpected(&self) -> Unexpected<'_> {
        match &self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(truth) => Unexpected::Bool(*truth),
            Value::Other(name) => Unexpected::Other(name),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
        }
    }

    fn refuse<'de, V: Visitor<'de>>(&self, visitor: &V) -> Error {
        Error::invalid_type(self.unexpected(), visitor)
    }

    /// Visitors of quantities say of numbers which unit is missing.
    fn scalar<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(truth) => visitor.visit_bool(truth),
            _ => Err(self.refuse(&visitor)),
        }
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let length = items.len();
                let mut items = Items { items: items.into_iter(), at: 0 };
                let made = visitor.visit_seq(&mut items)?;
                match items.items.len() {
                    0 => Ok(made),
                    more => Err(Error::custom(format_args!(
                        "a list of {length} must be a list of {}",
                        length - more
                    ))),
                }
            }
            _ => Err(self.refuse(&visitor)),
        }
    }

    fn table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Table(table) => visitor.visit_map(Entries { entries: table.into_iter(), value: None }),
            _ => Err(self.refuse(&visitor)),
        }
    }
}

macro_rules! scalars {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> { self.scalar(visitor) })*
    };
}

impl<'de> Deserializer<'de> for Tree {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => self.list(visitor),
            Value::Table(_) => self.table(visitor),
            _ => self.scalar(visitor),
        }
    }

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_identifier deserialize_unit
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.scalar(visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
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
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.table(visitor)
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
            Value::String(name) => visitor.visit_enum(Name(name)),
            _ => Err(self.refuse(&visitor)),
        }
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

impl IntoDeserializer<'_, Error> for Tree {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

struct Items {
    items: std::vec::IntoIter<Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(Tree(item)).map(Some).map_err(|e| e.within(format!("[{at}]")))
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries {
    entries: std::vec::IntoIter<(String, Value)>,
    /// The value of the key that was handed out last.
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let found =
            seed.deserialize(Tree(Value::String(key.clone()))).map_err(|e| e.within(format!(".{key}")))?;
        self.value = Some((key, value));
        Ok(Some(found))
    }
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (key, value) = self.value.take().ok_or_else(|| Error::custom("a value without a key"))?;
        seed.deserialize(Tree(value)).map_err(|e| e.within(format!(".{key}")))
    }
}

/// The name of a variant without parameters.
struct Name(String);

impl<'de> EnumAccess<'de> for Name {
    type Error = Error;
    type Variant = Unit;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Unit), Error> {
        seed.deserialize(Tree(Value::String(self.0))).map(|variant| (variant, Unit))
    }
}

struct Unit;

impl<'de> VariantAccess<'de> for Unit {
    type Error = Error;
    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        Err(Error::invalid_type(Unexpected::UnitVariant, &"a table"))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        Err(Error::invalid_type(Unexpected::UnitVariant, &visitor))
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        Err(Error::invalid_type(Unexpected::UnitVariant, &visitor))
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
        Value::Table(entries.map(|(key, value)| (key.to_owned(), value)).to_vec())
    }

    #[test]
    fn what_is_wrong_is_said_under_its_key() {
        let link = |rate, delays, router| {
            Link::deserialize(Tree(table([
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
            ("rate", "integer `5`", link(Value::Integer(5), fine().1, fine().2)),
            ("delays[1]", "lots", link(fine().0, vec![text("1ms"), text("lots")], fine().2)),
            (
                "router",
                "unknown field `omega`",
                link(fine().0, fine().1, table([("law", text("xcp")), ("omega", text("1"))])),
            ),
            (
                "router",
                "missing field `law`",
                link(fine().0, fine().1, table([("alpha", Value::Float(0.3))])),
            ),
            ("router", "unknown variant `cubic`", link(fine().0, fine().1, text("cubic"))),
            ("", "missing field `rate`", Link::deserialize(Tree(table([])))),
            ("speed", "unknown field `speed`", Link::deserialize(Tree(table([("speed", text("5Mbps"))])))),
            ("", "sequence, expected struct Link", Link::deserialize(Tree(Value::Array(vec![fine().0])))),
        ] {
            let error = wrong.expect_err(message);
            assert_eq!(error.key(), key);
            assert!(error.message.contains(message), "{error}");
        }
    }
}
