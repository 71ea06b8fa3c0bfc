//! The lists of laws: [headers], [senders], [routers], [queues] and [schedulers], a line for each.
//!
//! A header is the part of a packet that sender laws and router laws use to communicate. Each law names its header,
//! so that several laws may share one. For each list, macros generate an enum, so that the engine dispatches by a
//! jump and not through a vtable. They also generate the names and parameters that a scenario may use. No other place
//! in the project lists laws. The line of a law that no other module uses may declare its module, as in
//! `mod ramp "../ramp.rs"`, so that adding the law changes no other file. A build without the feature `full` omits
//! the lines under `full` and refuses these laws by name.

pub mod headers;
pub mod queues;
pub mod routers;
pub mod schedulers;
#[cfg(feature = "scripted")]
pub mod scripted;
pub mod senders;

pub use headers::Header;
pub use queues::{AnyQueue, QueueSpec};
pub use routers::{AnyRouter, RouterSpec};
pub use schedulers::ShareSpec;
pub use senders::{AnySender, SenderSpec};

/// Evaluates the same expression for any law of a list.
macro_rules! each {
    ($it:expr, $($variant:ident)*; $law:ident => $do:expr) => {
        match $it {
            $( Self::$variant($law) => $do, )*
            #[cfg(feature = "scripted")]
            Self::Scripted($law) => $do,
        }
    };
}
use each;

#[cfg(test)]
mod tests;

/// Calls a macro with its lines; without the feature `full`, only with those outside of `full`.
macro_rules! in_this_build {
    ($make:ident $({ $($always:tt)* } full { $($more:tt)* })*) => {
        #[cfg(feature = "full")]
        $make! { $($($always)* $($more)*)* }
        #[cfg(not(feature = "full"))]
        $make! { $($($always)*)* }
    };
}
use in_this_build;

/// Defines `$spec`, the type for a law and its parameters in a scenario. It is an enum tagged by `$tag`, in which
/// `key = "name"` abbreviates `key = { $tag = "name" }`.
macro_rules! spec {
    (
        $(#[$doc:meta])* $spec:ident, $table:ident, $tag:literal, $expecting:literal,
        { $( $(#[$variant_doc:meta])* $variant:ident $name:literal $params:ty; )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = $tag)]
        pub enum $spec { $( $(#[$variant_doc])* #[serde(rename = $name)] $variant($params) ),* }

        #[derive(schemars::JsonSchema)]
        #[schemars(tag = $tag)]
        #[expect(dead_code, reason = "its schema is that of the table")]
        enum $table { $( $(#[$variant_doc])* #[schemars(rename = $name)] $variant($params) ),* }

        impl $spec {
            /// All names, in the order of the registry.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The law's name in scenarios.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name ),* }
            }
        }

        impl schemars::JsonSchema for $spec {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($spec))
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let table = $table::json_schema(generator);
                schemars::json_schema!({
                    "description": $expecting,
                    "anyOf": [{ "type": "string", "enum": [$($name),*] }, table],
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use crate::tree::{self, Tree, Value};
                use serde::de;
                fn of<E: de::Error>(name: &str, parameters: tree::Table) -> Result<$spec, E> {
                    let parameters = Value::Table(parameters);
                    let parameters = Tree(&parameters);
                    let spec = match name {
                        $( $name => <$params>::deserialize(parameters).map($spec::$variant), )*
                        _ => return Err(E::unknown_variant(name, $spec::NAMES)),
                    };
                    spec.map_err(E::custom)
                }
                struct V;
                impl<'de> de::Visitor<'de> for V {
                    type Value = $spec;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, name: &str) -> Result<$spec, E> {
                        of(name, tree::Table::default())
                    }
                    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<$spec, A::Error> {
                        let mut table = tree::table(map)?;
                        match table.remove($tag) {
                            Some(Value::String(name)) => of(&name, table),
                            Some(other) => Err(de::Error::invalid_type(Tree(&other).unexpected(), &"a name")),
                            None => Err(de::Error::missing_field($tag)),
                        }
                    }
                }
                deserializer.deserialize_any(V)
            }
        }
    };
}
use spec;
