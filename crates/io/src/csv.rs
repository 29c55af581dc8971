//! CSV: curves, the rows of a run, and fields as `x,y,value` lines; a strict reader for tables of numbers.

use std::io::Write;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::{atomic_write, read_text};
use zellige_engine::record::{self, Axis, Centring, Curve, Entries, Field, Measured, Row, Scalar, Values};
use zellige_engine::sim::Clock;

/// Largest table that is read back.
const LARGEST: u64 = 1 << 28;
const FORMAT: &str = "CSV";

/// A table of numbers with named columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Column names, units in brackets.
    pub names: Vec<String>,
    /// The columns, all of one length.
    pub columns: Vec<Vec<f64>>,
}

/// A cell of text: quoted where it holds a comma or a quote.
pub fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        text.into()
    }
}

fn head(name: &str, unit: &str) -> String {
    cell(&full(name, unit))
}

/// A column's name with its unit.
fn full(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

/// The unit in brackets at the end of a name.
pub fn unit_of(name: &str) -> Option<&str> {
    name.strip_suffix(']')?.rsplit_once(" [").map(|(_, unit)| unit)
}

/// Names of the lines of curves with the unit of the ordinate.
fn names_with_units(curve: &Curve) -> impl Iterator<Item = String> {
    let unit = unit_of(&curve.y_label).unwrap_or_default();
    curve.lines.iter().map(move |(name, _)| if unit_of(name).is_some() { name.clone() } else { full(name, unit) })
}

/// Writes curves: the abscissa first, then one column per line, with the unit of the ordinate. Every digit that is needed to read
/// the same `f64` back.
pub fn write_curve(path: impl AsRef<Path>, curve: &Curve) -> Result<()> {
    let lines: Vec<_> = names_with_units(curve).zip(curve.lines.iter().map(|l| &l.1[..])).collect();
    write_lines(path.as_ref(), curve, &lines)
}

fn write_lines(path: &Path, curve: &Curve, lines: &[(String, &[f64])]) -> Result<()> {
    if let Some((name, line)) = lines.iter().find(|l| l.1.len() != curve.x.len()) {
        let message = format!("the line `{name}` has {} values, the abscissa {}", line.len(), curve.x.len());
        return Err(Error::format(path, FORMAT, message));
    }
    atomic_write(path, |out| {
        let names: Vec<String> = lines.iter().map(|l| cell(&l.0)).collect();
        writeln!(out, "{},{}", cell(&curve.x_label), names.join(","))?;
        for (i, x) in curve.x.iter().enumerate() {
            write!(out, "{x:e}")?;
            for (_, values) in lines {
                write!(out, ",{:e}", values[i])?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Writes curves with their standard errors: behind each line's column the one of its errors, `NAME error`.
pub fn write_measured(path: impl AsRef<Path>, measured: &Measured) -> Result<()> {
    let curve = &measured.curve;
    let unknown = vec![f64::NAN; curve.x.len()];
    let mut lines = Vec::new();
    for (k, (name, (_, values))) in names_with_units(curve).zip(&curve.lines).enumerate() {
        let of = format!("{name} error");
        lines.extend([(name, &values[..]), (of, measured.errors.get(k).map_or(&unknown[..], Vec::as_slice))]);
    }
    write_lines(path.as_ref(), curve, &lines)
}

/// The rows of the part of a run before it went on from a checkpoint, as its file has them.
#[derive(Debug, Clone, Default)]
pub struct EarlierRows {
    /// Names of the columns with their units, `step` first.
    names: Vec<String>,
    /// One row each.
    lines: Vec<String>,
}

impl EarlierRows {
    /// The rows up to step `last` of a file by [`write_rows`]; none where there is no file.
    ///
    /// # Errors
    /// Where the file cannot be read, or was not written by [`write_rows`].
    pub fn read(path: impl AsRef<Path>, last: u64) -> Result<Self> {
        let path = path.as_ref();
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = read_text(path, FORMAT, LARGEST)?;
        let mut lines = text.lines();
        let names = split_names(lines.next().unwrap_or_default()).map_err(|message| Error::format(path, FORMAT, message))?;
        if names[0] != "step" {
            return Err(Error::format(path, FORMAT, format!("its first column is `{}`, expected `step`", names[0])));
        }
        let step = |line: &&str| line.split(',').next().and_then(|s| s.parse::<u64>().ok());
        let whole = |line: &&str| line.split(',').count() == names.len();
        let lines = lines.take_while(|line| whole(line) && step(line).is_some_and(|s| s <= last)).map(str::to_owned).collect();
        Ok(Self { names, lines })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Writes the rows of a run: step, time where there is one, then the scalars in the order in which rows first have them. Rows of an
/// `earlier` part stand before them as they are; what a row does not have is `NaN`.
pub fn write_rows(path: impl AsRef<Path>, earlier: &EarlierRows, rows: &[(Clock, Row)]) -> Result<()> {
    let timed = rows.iter().any(|r| r.0.time.is_some()) || earlier.names.get(1).is_some_and(|n| n == "time");
    let before = earlier.names.get(1 + usize::from(timed)..).unwrap_or_default();
    let mut here: Vec<(String, &str)> = Vec::new();
    let mut last: &[Scalar] = &[];
    for (_, Row(row)) in rows {
        // Most are like the one before.
        if row.len() != last.len() || row.iter().zip(last).any(|(a, b)| a.name != b.name) {
            let added = row.iter().filter(|s| here.iter().all(|h| h.1 != s.name)).map(|s| (full(s.name, s.unit), s.name));
            here.extend(added.collect::<Vec<_>>());
        }
        last = row;
    }
    let of = |column: &String| here.iter().find(|h| h.0 == *column).map(|h| h.1);
    let mut columns: Vec<_> = before.iter().map(|name| (name, of(name))).collect();
    let added: Vec<_> = here.iter().filter(|h| !before.contains(&h.0)).map(|h| (&h.0, Some(h.1))).collect();
    let unknown = ",NaN".repeat(added.len());
    columns.extend(added);
    atomic_write(path, |out| {
        write!(out, "step{}", if timed { ",time" } else { "" })?;
        for (name, _) in &columns {
            write!(out, ",{}", cell(name))?;
        }
        writeln!(out)?;
        for line in &earlier.lines {
            writeln!(out, "{line}{unknown}")?;
        }
        for (clock, row) in rows {
            write!(out, "{}", clock.step)?;
            if timed {
                write!(out, ",{:e}", clock.time.unwrap_or(f64::NAN))?;
            }
            for (_, scalar) in &columns {
                write!(out, ",{:e}", scalar.and_then(|name| row.get(name)).unwrap_or(f64::NAN))?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

/// Writes a field: one line per value with its position.
pub fn write_field(path: impl AsRef<Path>, field: &Field) -> Result<()> {
    let path = path.as_ref();
    crate::check_field(path, FORMAT, field)?;
    let shift = if field.centring == Centring::Cell { 0.5 } else { 0.0 };
    atomic_write(path, |out| {
        for axis in &field.axes {
            write!(out, "{},", head(&axis.name, &axis.unit))?;
        }
        writeln!(out, "{}", head(&field.name, &field.unit))?;
        for flat in 0..field.values.len() {
            let mut rest = flat;
            for axis in &field.axes {
                write!(out, "{:e},", axis.origin + ((rest % axis.len) as f64 + shift) * axis.spacing)?;
                rest /= axis.len;
            }
            writeln!(out, "{:e}", field.values.get(flat))?;
        }
        Ok(())
    })
}

/// Writes particles: one line each, columns `position_x` and so on.
pub fn write_table(path: impl AsRef<Path>, table: &record::Table) -> Result<()> {
    let path = path.as_ref();
    let uneven = |c: &&record::Column| c.values.lines().is_some_and(|n| n != table.len);
    if let Some(column) = table.columns.iter().find(uneven) {
        return Err(Error::format(path, FORMAT, format!("the column `{}` does not have {} values", column.name(), table.len)));
    }
    atomic_write(path, |out| {
        let names: Vec<String> = table.columns.iter().map(|c| head(&c.name(), &c.unit)).collect();
        writeln!(out, "{}", names.join(","))?;
        for i in 0..table.len {
            for (n, column) in table.columns.iter().enumerate() {
                let comma = if n == 0 { "" } else { "," };
                match &column.values {
                    Entries::Whole(values) => write!(out, "{comma}{}", values[i])?,
                    values => write!(out, "{comma}{:e}", values.get(i))?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    })
}

impl Table {
    /// The field of two or three axes that [`write_field`] wrote as this table, with its values in cells; `None` of another table.
    pub fn field(&self, name: &str) -> Option<Field> {
        let dimensions = self.columns.len().checked_sub(1).filter(|d| (2..=3).contains(d))?;
        let (len, mut stride, mut axes) = (self.columns[0].len(), 1, Vec::new());
        for (title, places) in self.names.iter().zip(&self.columns[..dimensions]) {
            // Up to where a line of the axis ends.
            let line: Vec<f64> = places.iter().step_by(stride).copied().collect();
            let n = line.windows(2).position(|w| w[1] <= w[0]).map_or(line.len(), |end| end + 1);
            let spacing = (line.get(n.checked_sub(1)?)? - line[0]) / (n.max(2) - 1) as f64;
            let even = |k: usize, x: f64| (x - (line[0] + spacing * k as f64)).abs() <= 1e-6 * spacing;
            if n < 2 || !places.iter().enumerate().all(|(i, x)| even(i / stride % n, *x)) {
                return None;
            }
            let (title, unit) = title.split_once(" [").map_or((title.as_str(), ""), |(title, unit)| (title, unit.trim_end_matches(']')));
            axes.push(Axis { name: title.into(), unit: unit.into(), origin: line[0] - 0.5 * spacing, spacing, len: n });
            stride *= n;
        }
        let values = Values::F64(self.columns[dimensions].clone());
        (stride == len).then(|| Field { title: self.names[dimensions].clone(), ..Field::bare(name, axes, Centring::Cell, values) })
    }
}

/// Reads a table: one line of names, then lines of numbers.
pub fn read(path: impl AsRef<Path>) -> Result<Table> {
    let path = path.as_ref();
    parse(&read_text(path, FORMAT, LARGEST)?).map_err(|message| Error::format(path, FORMAT, message))
}

fn parse(text: &str) -> Result<Table, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or("it is empty, expected a line of column names")?;
    let names = split_names(first)?;
    let mut columns = vec![Vec::new(); names.len()];
    for (number, line) in lines {
        let number = number + 1;
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != names.len() {
            return Err(format!("line {number} has {} cells, expected {}", cells.len(), names.len()));
        }
        for ((column, cell), name) in columns.iter_mut().zip(cells).zip(&names) {
            let value = cell.trim();
            column.push(value.parse().map_err(|_| format!("line {number}, column `{name}`: `{value}` is not a number"))?);
        }
    }
    Ok(Table { names, columns })
}

fn split_names(line: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A doubled quote within quotes is one quote.
            '"' if quoted && chars.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => names.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    names.push(name);
    if quoted {
        return Err("the first line has an open quote".into());
    }
    Ok(names.into_iter().map(|n| n.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve() -> Curve {
        Curve {
            name: "c".into(),
            title: "a curve".into(),
            x_label: "t [s], from \"here\"".into(),
            y_label: "y".into(),
            x: vec![0.0, 0.1, 1e300],
            lines: vec![("a".into(), vec![1.0 / 3.0, -2e-308, f64::NAN]), ("b".into(), vec![1.0, 2.0, f64::INFINITY])],
            log_y: false,
        }
    }

    #[test]
    fn curves_are_read_back_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.csv");
        write_curve(&path, &curve()).unwrap();
        let table = read(&path).unwrap();
        assert_eq!(table.names, ["t [s], from \"here\"", "a", "b"]);
        assert_eq!(table.columns[0], curve().x);
        assert_eq!(table.columns[1][..2], curve().lines[0].1[..2]);
        assert!(table.columns[1][2].is_nan());
        assert_eq!(table.columns[2], curve().lines[1].1);
        let with_unit = Curve { y_label: "rate [1/s]".into(), ..curve() };
        let errors = vec![vec![0.5; 3], vec![0.25; 3]];
        write_measured(&path, &Measured { curve: with_unit, errors }).unwrap();
        assert_eq!(read(&path).unwrap().names[1..], ["a [1/s]", "a [1/s] error", "b [1/s]", "b [1/s] error"]);
        let mut uneven = curve();
        uneven.lines[0].1.pop();
        assert!(write_curve(&path, &uneven).unwrap_err().to_string().contains("has 2 values, the abscissa 3"));
    }

    #[test]
    fn a_field_of_several_axes_is_one_again_and_no_other_table_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.csv");
        let axis = |name: &str, len| Axis { name: name.into(), unit: "m".into(), origin: -1.0, spacing: 0.3, len };
        for lens in [vec![4, 3], vec![2, 5, 3]] {
            let axes: Vec<Axis> = ["x", "y", "z"].iter().zip(&lens).map(|(name, len)| axis(name, *len)).collect();
            let values = (0..lens.iter().product()).map(|i| f64::from(i as u32).sin()).collect();
            let field = Field { unit: "Pa".into(), ..Field::bare("p", axes, Centring::Cell, Values::F64(values)) };
            write_field(&path, &field).unwrap();
            let mut table = read(&path).unwrap();
            let back = table.field("p").unwrap();
            assert_eq!((&back.values, back.title.as_str()), (&field.values, "p [Pa]"));
            for (a, b) in back.axes.iter().zip(&field.axes) {
                assert_eq!((&a.name, &a.unit, a.len), (&b.name, &b.unit, b.len));
                assert!((a.origin - b.origin).abs() < 1e-12 && (a.spacing - b.spacing).abs() < 1e-12, "{a:?}");
            }
            // A place that is off, and a value less.
            let mut uneven = table.clone();
            uneven.columns[1][4] += 0.1;
            assert!(uneven.field("p").is_none());
            table.columns.iter_mut().for_each(|column| column.truncate(field.values.len() - 1));
            assert!(table.field("p").is_none());
        }
        write_curve(&path, &curve()).unwrap();
        assert!(read(&path).unwrap().field("c").is_none());
    }

    #[test]
    fn rows_have_a_time_where_the_solver_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let mut row = Row::default();
        row.push("energy", "J", 2.5);
        write_rows(&path, &EarlierRows::default(), &[(Clock { step: 3, time: None }, row.clone())]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,energy [J]\n3,2.5e0\n");
        write_rows(&path, &EarlierRows::default(), &[(Clock { step: 3, time: Some(0.5) }, row)]).unwrap();
        assert_eq!(read(&path).unwrap().columns, [[3.0], [0.5], [2.5]]);
        // Columns come and go.
        let row = |step: u64, names: &[&'static str]| {
            let mut row = Row::default();
            for name in names {
                row.push(name, "", step as f64);
            }
            (Clock { step, time: None }, row)
        };
        write_rows(&path, &EarlierRows::default(), &[row(1, &["a", "b"]), row(2, &["b"]), row(3, &["b", "c"])]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,a,b,c\n1,1e0,1e0,NaN\n2,NaN,2e0,NaN\n3,NaN,3e0,3e0\n");
    }

    #[test]
    fn rows_of_an_earlier_part_are_kept_up_to_where_the_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let row = |names: &[&'static str], step: u64| {
            let mut row = Row::default();
            for name in names {
                row.push(name, "", step as f64 + 0.5);
            }
            (Clock { step, time: Some(step as f64) }, row)
        };
        assert!(EarlierRows::read(&path, 9).unwrap().is_empty(), "there is no file yet");
        write_rows(&path, &EarlierRows::default(), &[1, 2, 3].map(|step| row(&["a", "b"], step))).unwrap();
        // A line that a broken-off program of another kind left half is not taken.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}4,4e0,4.")).unwrap();
        assert_eq!((EarlierRows::read(&path, 9).unwrap().len(), EarlierRows::read(&path, 2).unwrap().len()), (3, 2));
        // After the checkpoint of step 2 other columns come: the part that each lacks is not known.
        write_rows(&path, &EarlierRows::read(&path, 2).unwrap(), &[3, 4].map(|step| row(&["b", "c"], step))).unwrap();
        let expected = "step,time,a,b,c\n1,1e0,1.5e0,1.5e0,NaN\n2,2e0,2.5e0,2.5e0,NaN\n3,3e0,NaN,3.5e0,3.5e0\n4,4e0,NaN,4.5e0,4.5e0\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        std::fs::write(&path, "x,y\n1,2\n").unwrap();
        assert!(EarlierRows::read(&path, 2).unwrap_err().to_string().contains("expected `step`"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("a,b\n1,2\n\n3\n").unwrap_err(), "line 4 has 1 cells, expected 2");
        assert_eq!(parse("a,b\n1,x\n").unwrap_err(), "line 2, column `b`: `x` is not a number");
        assert!(parse("").unwrap_err().contains("empty"));
    }

    proptest! {
        #[test]
        fn any_text_ends_in_an_answer(text in "[a-z0-9\",.\n ]{0,60}") {
            let _ = parse(&text);
        }
    }
}
