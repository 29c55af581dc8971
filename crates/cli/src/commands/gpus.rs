//! Several GPUs in one argument: `cuda:all`, `cuda:0-3`, `cuda:0,2`.

use zellige_engine::cuda::Cuda;
use zellige_engine::error::{Error, Problem, Result};

/// Largest number of a GPU.
const MOST: usize = 1024;

/// Device that is asked for by `--device`, or else by `ZELLIGE_DEVICE`.
pub(crate) fn asked(argument: Option<&str>) -> Option<String> {
    argument.map(str::to_owned).or_else(|| std::env::var("ZELLIGE_DEVICE").ok().filter(|text| !text.is_empty()))
}

/// Numbers of all GPUs.
pub(crate) fn all() -> Result<Vec<usize>> {
    Cuda::count().map(|n| (0..n).collect())
}

/// Numbers of the GPUs in a list; none where `text` is no list of GPUs.
pub(crate) fn listed(text: &str) -> Result<Option<Vec<usize>>> {
    if text == "cuda:all" {
        return all().map(Some);
    }
    match text.strip_prefix("cuda:").map(|list| list.split(',').map(range).collect::<Option<Vec<_>>>()) {
        None => Ok(None),
        Some(Some(ranges)) => {
            let all = ranges.concat();
            // One GPU twice would have two shares of one run, or two runs at a time.
            match all.iter().enumerate().find(|(k, gpu)| all[..*k].contains(gpu)) {
                None => Ok(Some(all)),
                Some((_, twice)) => Err(refused(format!("`{text}` names GPU {twice} twice"))),
            }
        }
        Some(None) => Err(refused(format!("`{text}` names no devices"))),
    }
}

fn refused(message: String) -> Error {
    let problem = Problem::new("--device", message);
    Error::input("command line", problem.allowed("auto, cpu, cuda, cuda:N, cuda:0-3, cuda:0,2, cuda:all"))
}

/// `2` or `0-3`.
fn range(text: &str) -> Option<Vec<usize>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (low.parse::<usize>().ok()?, high.parse::<usize>().ok()?);
    (low <= high && high < MOST).then(|| (low..=high).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        let found = |text: &str| listed(text).map_err(|error| error.to_string());
        assert_eq!((found("cpu"), found("cuda"), found("auto")), (Ok(None), Ok(None), Ok(None)));
        assert_eq!((found("cuda:3"), found("cuda:0-2,5")), (Ok(Some(vec![3])), Ok(Some(vec![0, 1, 2, 5]))));
        for (text, word) in [("cuda:x", "no devices"), ("cuda:3-1", "no devices"), ("cuda:0-2,1", "GPU 1 twice")] {
            assert!(found(text).unwrap_err().contains(word), "{text}");
        }
    }
}
