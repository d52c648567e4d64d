//! Names of arrays in listings and drawings: A to Z, AA and so on.

/// The name of number `n`, counted from 0.
pub(super) fn letters(n: usize) -> String {
    let mut letters = Vec::new();
    let mut left = n + 1;
    while left > 0 {
        letters.push(b'A' + ((left - 1) % 26) as u8);
        left = (left - 1) / 26;
    }
    letters.iter().rev().map(|b| char::from(*b)).collect()
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn letters_go_on_behind_z() {
        let names = [0, 25, 26, 51, 52, 701, 702].map(letters);
        assert_eq!(names, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
    }
}
