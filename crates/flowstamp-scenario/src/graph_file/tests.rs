use super::*;
use std::cell::Cell;
use std::fmt::Write;

thread_local! {
    /// Number of bytes in which lines were counted.
    pub static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
}

/// The links of a graph's file, as `from->to rate delay weight duplex`, or the error.
fn links(file: &str, keys: &str) -> std::result::Result<Vec<String>, String> {
    let mut tree = crate::from_toml::tree(&format!("[graph]\nfile = \"net\"\n{keys}")).expect("a table");
    expand(&mut tree, |_, _| Ok(file.to_owned())).map_err(|e| e.to_string())?;
    let links = tree.get("graph").and_then(|graph| graph.get("links"));
    let Some(Value::Array(links)) = links else { panic!("no links") };
    let shown = |link: &Value| {
        let text = |key: &str| link.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
        let weight = match link.get("weight") {
            Some(Value::Float(weight)) => weight.to_string(),
            Some(Value::Integer(weight)) => weight.to_string(),
            _ => "-".to_owned(),
        };
        let duplex = if link.get("duplex") == Some(&Value::Boolean(true)) { "<->" } else { "->" };
        let name =
            link.get("name").and_then(Value::as_str).map_or(String::new(), |name| format!(" as {name}"));
        format!("{}{duplex}{} {} {} {weight}{name}", text("from"), text("to"), text("rate"), text("delay"))
    };
    Ok(links.iter().map(shown).collect())
}

fn refused(file: &str, keys: &str) -> String {
    links(file, keys).expect_err("it is refused")
}

const DELAY: &str = "delay = \"1ms\"";

#[test]
fn separators_are_found() {
    for separator in [",", ";", "\t"] {
        let file = "source,target,rate,delay\na,b,10Mbps,2ms\n".replace(',', separator);
        assert_eq!(links(&file, ""), Ok(vec!["a<->b 10Mbps 2ms -".to_owned()]), "{separator:?}");
    }
    let wrong = refused("source|target|rate\na|b|1Mbps\n", DELAY);
    assert!(wrong.contains("separate the columns by commas, semicolons or tabs"), "{wrong}");
}

#[test]
fn unknown_columns_are_refused_unless_they_are_ignored() {
    let file = "source,target,rate,colour\na,b,1Mbps,red\n";
    let wrong = refused(file, DELAY);
    assert!(
        wrong.starts_with(": graph.file: \"net\": line 1: has a column \"colour\"; a graph has source, "),
        "{wrong}"
    );
    assert!(wrong.ends_with("set ignore_columns = [\"colour\"]"), "{wrong}");
    for ignored in ["colour", "*", "col*"] {
        let keys = format!("{DELAY}\nignore_columns = [\"{ignored}\"]");
        assert_eq!(links(file, &keys), Ok(vec!["a<->b 1Mbps 1ms -".to_owned()]));
    }
    let wrong = refused("source,target,rate,wieght\na,b,1Mbps,3\n", DELAY);
    assert!(wrong.contains("did you mean \"weight\"?"), "{wrong}");
}

/// A graph in the style of the Topology Zoo: bit/s as a bare number, other attributes, and edges without a speed.
const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d33" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">51.5</data></node><node id="1"/><node id="2"/>
    <edge source="0" target="1"><data key="d33">OC-192</data><data key="d35">10000000000.0</data></edge>
    <edge source="1" target="2"><data key="d33">unknown</data></edge>
    <edge source="2" target="0"><data key="d35"><![CDATA[2.5e9]]></data></edge>
  </graph>
</graphml>"#;

#[test]
fn bare_numbers_have_the_unit_that_is_given() {
    let keys = format!("{DELAY}\nrate = \"1Gbps\"\nrate_key = \"LinkSpeedRaw\"\nrate_unit = \"bps\"");
    let expected = ["0<->1 10000000000.0bps 1ms -", "1<->2 1Gbps 1ms -", "2<->0 2.5e9bps 1ms -"];
    assert_eq!(links(ZOO, &keys).expect("links"), expected);
    let table = "source,target,mbps,ms,cost\na,b,10,5,3\n";
    let keys =
        "rate_key=\"mbps\"\nrate_unit=\"Mbps\"\ndelay_key=\"ms\"\ndelay_unit=\"ms\"\nweight_key=\"cost\"";
    assert_eq!(links(table, keys).expect("links"), ["a<->b 10Mbps 5ms 3"]);
    // A value with a unit keeps it.
    let keys = "rate_unit = \"Mbps\"\ndelay_unit = \"ms\"";
    assert_eq!(
        links("source,target,rate,delay\na,b,10kbps,5us\n", keys).expect("links"),
        ["a<->b 10kbps 5us -"]
    );
    for (keys, words) in [
        (
            "rate_key = \"LinkSpeedRaw\"",
            "LinkSpeedRaw is \"10000000000.0\": \"10000000000.0\" has no unit; write for example \"45Mbps\"; or set graph.rate_unit",
        ),
        (
            "rate_unit = \"bits\"",
            ": graph.rate_unit: \"1bits\" has the unknown unit \"bits\"; use one of bps",
        ),
        ("delay_unit = \"Ms\"", ": graph.delay_unit: \"1Ms\" has the unit \"Ms\"; did you mean \"ms\"?"),
        (
            "rate_key = \"Speed\"",
            "has no attribute \"Speed\", which graph.rate_key names; edges have LinkLabel, LinkSpeedRaw",
        ),
        ("rate_key = \"delay\"", ": graph.delay_key: is \"delay\", which is rate_key; name another column"),
        ("rate_key = 3", ": graph.rate_key: must be text"),
        ("directed = 1", ": graph.directed: must be true or false"),
        ("ignore_columns = \"x\"", ": graph.ignore_columns: must be a list of names"),
    ] {
        let wrong = refused(ZOO, &format!("{DELAY}\n{keys}"));
        assert!(wrong.contains(words), "{keys}: {wrong}");
    }
}

#[test]
fn weights_are_numbers() {
    let file = "source,target,rate,weight\na,b,1Mbps,2.5\nb,c,1Mbps,\n";
    let keys = format!("{DELAY}\nweight = 4");
    assert_eq!(links(file, &keys).expect("links"), ["a<->b 1Mbps 1ms 2.5", "b<->c 1Mbps 1ms 4"]);
    let wrong = refused("source,target,rate,weight\na,b,1Mbps,0\n", DELAY);
    assert!(wrong.contains("line 2 (a to b): weight is \"0\": write a number from 0.000001"), "{wrong}");
}

#[test]
fn directed_graphs_have_links_of_one_way() {
    let file = "source,target,rate,duplex\na,b,1Mbps,\nb,c,1Mbps,True\n";
    let all = |keys: &str| links(file, &format!("{DELAY}\n{keys}")).expect("links");
    assert_eq!(all(""), ["a<->b 1Mbps 1ms -", "b<->c 1Mbps 1ms -"]);
    assert_eq!(all("directed = true"), ["a->b 1Mbps 1ms -", "b<->c 1Mbps 1ms -"]);
    let zoo = |text: &str, keys: &str| {
        let links = links(text, &format!("{DELAY}\nrate = \"1Gbps\"\n{keys}")).expect("links");
        links.iter().filter(|link| link.contains("<->")).count()
    };
    let directed = ZOO.replace("undirected", "directed");
    assert_eq!([zoo(ZOO, ""), zoo(&directed, "")], [3, 0]);
    assert_eq!([zoo(ZOO, "directed = true"), zoo(&directed, "directed = false")], [0, 3]);
}

#[test]
fn links_side_by_side_have_names_that_differ() {
    let file = "source,target,rate\na,b,1Mbps\na,b,1Mbps\nb,a,1Mbps\nb,a,1Mbps\n";
    let named = |keys: &str| {
        let links = links(file, &format!("{DELAY}\n{keys}")).expect("links");
        links.iter().map(|link| link.split(" as ").nth(1).unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(""), ["", "a->b#2", "b->a#3", "b->a#4"]);
    assert_eq!(named("directed = true"), ["", "a->b#2", "", "b->a#2"]);
}

#[test]
fn a_loop_is_named_by_the_edge_of_the_file() {
    let wrong = refused(&ZOO.replace("source=\"1\"", "source=\"2\""), &format!("{DELAY}\nrate = \"1Gbps\""));
    assert_eq!(
        wrong,
        ": graph.file: \"net\": line 9 (2 to 2): is a loop, but a link joins two nodes; remove the edge"
    );
    let wrong = refused("source,target,rate\na,b,1Mbps\nb,b,1Mbps\n", DELAY);
    assert!(wrong.contains("line 3 (b to b): is a loop"), "{wrong}");
}

/// An edge of the file has its line, and laws that the file does not give are keys of the graph.
#[test]
fn errors_of_links_name_the_line_or_the_graphs_key() {
    let keys = format!("[graph]\nfile = \"net\"\n{DELAY}");
    let mut tree = crate::from_toml::tree(&keys).expect("a table");
    let file = "source,target,rate,queue\na,b,1Mbps,red\n".to_owned();
    let places = expand(&mut tree, |_, _| Ok(file.clone())).expect("a graph");
    let named = |key: &str| places.name(ScenarioError::new(key, "is wrong")).to_string();
    assert_eq!(named("graph.links[0].rate"), ": graph.file: \"net\": line 2 (a to b): rate is wrong");
    assert_eq!(named("graph.links[0].router.alpha"), ": graph.router.alpha: is wrong");
    assert_eq!(
        named("graph.links[0].queue.ecn"),
        ": graph.file: \"net\": line 2 (a to b): queue.ecn is wrong"
    );
}

#[test]
fn other_formats_are_named() {
    for (file, format) in [
        ("<?xml version=\"1.0\"?>\n<gexf version=\"1.3\"><graph><nodes/></graph></gexf>", "GEXF"),
        ("<html/>", "XML of <html>"),
        ("graph [\n  node [\n    id 0\n", "GML"),
        ("Creator \"igraph\"\nVersion 1\ngraph\n[\n  directed 0\n", "GML"),
        ("# comment\nstrict digraph {\n  a -> b;\n}\n", "DOT"),
        ("graph{ a -- b }", "DOT"),
        ("{\"directed\": false, \"nodes\": [], \"links\": []}", "JSON"),
        ("*Vertices 3\n1 \"a\"\n", "Pajek"),
    ] {
        let expected = format!(
            "\"net\": is {format}, which is not read; write GraphML, as networkx.write_graphml does, or CSV"
        );
        let wrong = refused(file, DELAY);
        assert!(
            wrong.ends_with(&expected) || wrong.contains(&format!("is {format}, which is not read")),
            "{file}: {wrong}"
        );
    }
}

/// Lines are counted once: a file with eight times as many edges has at most eight times as many bytes read for it.
#[test]
fn each_byte_is_looked_at_once() {
    for edges in [500, 4000] {
        let mut file = String::from(
            "<graphml>\n<key id=\"d0\" for=\"edge\" attr.name=\"rate\"/>\n<graph>\n<node id=\"0\"/>\n",
        );
        for node in 1..=edges {
            let _ = writeln!(
                file,
                "<node id=\"{node}\"/>\n<edge source=\"0\" target=\"{node}\">\n<data key=\"d0\">1Mbps</data></edge>"
            );
        }
        file += "</graph>\n</graphml>\n";
        LOOKED_AT.with(|bytes| bytes.set(0));
        assert_eq!(links(&file, DELAY).expect("links").len(), edges);
        assert!(LOOKED_AT.with(Cell::get) <= file.len());
        // The last line of the last edge's tag.
        let wrong = refused(
            &file.replace("</graph>", "<edge source=\"0\" target=\"0\"/></graph>"),
            &format!("{DELAY}\nrate = \"1Mbps\""),
        );
        assert!(wrong.contains(&format!("line {} (0 to 0)", 5 + 3 * edges)), "{wrong}");
    }
}
