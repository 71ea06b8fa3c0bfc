//! The law that a command is to run.

use clap::ValueEnum;

/// `--law`: one of `L`, or what would be right.
pub fn parse<L: ValueEnum>(text: &str) -> Result<L, String> {
    let there: Vec<_> = L::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
    let there: Vec<_> = there.iter().map(clap::builder::PossibleValue::get_name).collect();
    let there = there.join(" or ");
    match text {
        "vcp" => Err(format!("not yet; it must be {there}")),
        _ => L::from_str(text, false).map_err(|_| format!("it must be {there}")),
    }
}
