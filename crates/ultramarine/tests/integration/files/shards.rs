//! Several files with an index, and indexes that lie.

use super::*;
use ultramarine::io::shards;

fn index(map: &[(&str, &str)]) -> String {
    let entries: Vec<String> =
        map.iter().map(|(tensor, file)| format!("{tensor:?}: {file:?}")).collect();
    let map = entries.join(", ");
    format!(r#"{{"metadata": {{"total_size": 12, "of": "it"}}, "weight_map": {{{map}}}}}"#)
}

/// A folder with two files of which each has `shared`, and the path of an index.
fn made(name: &str) -> Result<(Folder, PathBuf)> {
    let folder = Folder::new(name);
    fs::create_dir(folder.file("more")).expect("a directory");
    let files = [("one.safetensors", "a", 1.0f32), ("more/two.safetensors", "b", 2.0)];
    for (file, tensor, value) in files {
        let arrays = [tensor, "shared"].map(|name| (name.to_owned(), Array::scalar(value)));
        safetensors::save(folder.file(file), &arrays.into(), None)?;
    }
    let path = folder.file("model.safetensors.index.json");
    Ok((folder, path))
}

#[test]
fn all_files_of_an_index_are_loaded() -> Result<()> {
    let (_folder, path) = made("shards")?;
    for (file, shared) in [("one.safetensors", 1.0f32), ("more/two.safetensors", 2.0)] {
        let map = [("a", "one.safetensors"), ("b", "more/two.safetensors"), ("shared", file)];
        fs::write(&path, index(&map)).expect("writes");
        let Loaded::Safetensors(arrays, metadata) = load(&path)? else { panic!("another format") };
        let values: Result<Vec<f32>> = arrays.values().map(|a| a.item()).collect();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["a", "b", "shared"]);
        assert_eq!(values?, [1.0, 2.0, shared]);
        assert_eq!((&*metadata["total_size"], &*metadata["of"]), ("12", "it"));
    }
    Ok(())
}

#[test]
fn indexes_that_lie_are_errors() -> Result<()> {
    let (folder, path) = made("shards-bad")?;
    let outside = folder.file("one.safetensors").display().to_string();
    let inside = folder.file("more/index.json.index.json");
    fs::write(&inside, index(&[("a", "../one.safetensors")])).expect("writes");
    let error = shards::load(&inside).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("is outside the index's folder"), "{error}");
    let bad = [
        (index(&[("a", &outside)]), "is outside the index's folder"),
        (index(&[("a", "more/../one.safetensors")]), "is outside the index's folder"),
        (index(&[("a", "")]), "is outside the index's folder"),
        (index(&[("a", "..")]), "is outside the index's folder"),
        (index(&[("a", "more\\two.safetensors")]), "is outside the index's folder"),
        (index(&[("b", "one.safetensors")]), "one.safetensors has no tensor 'b'"),
        (index(&[("a", "missing.safetensors")]), "missing.safetensors"),
        (r#"{"weight_map": {"a": 1}}"#.into(), "should be a string"),
        (r#"{"weight_map": []}"#.into(), "no object 'weight_map'"),
        ("{}".into(), "no object 'weight_map'"),
        ("[1]".into(), "bad index"),
        (r#"{"weight_map": "#.repeat(1000), "bad index"),
        ("".into(), "bad index"),
    ];
    for (text, words) in bad {
        fs::write(&path, &text).expect("writes");
        let error = load(&path).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(words), "{text}: {error}");
    }
    fs::write(&path, index(&[])).expect("writes");
    assert!(read(&mut fs::File::open(&path).expect("the index"), Format::Index, "NAME").is_err());
    assert!(shards::load(&path)?.0.is_empty());
    Ok(())
}
