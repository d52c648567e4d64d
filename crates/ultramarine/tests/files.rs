//! Arrays in files: round trips, and files that are cut short or lie.

use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use ultramarine::io::{Arrays, Format, Loaded, Metadata, load, npy, npz, read, safetensors};
use ultramarine::{Array, Dtype, Error, Result};

/// A directory that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ultramarine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a temporary directory");
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bytes(a: &Array) -> Vec<u8> {
    a.with_bytes(|b| b.to_vec()).expect("evaluates")
}

fn assert_same(a: &Array, b: &Array, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    assert_eq!(a.dtype(), b.dtype(), "{what}");
    assert_eq!(bytes(a), bytes(b), "{what}");
}

/// Arrays of all dtypes in many layouts, by name.
fn samples() -> Result<Arrays> {
    let mut out = Arrays::new();
    for dtype in Dtype::ALL {
        let raw: Vec<u8> = (0..24 * dtype.size()).map(|i| (i * 37 % 251) as u8).collect();
        let a = Array::from_bytes(&raw, &[2, 3, 4], dtype)?;
        let row = Array::from_bytes(&raw[..4 * dtype.size()], &[4], dtype)?;
        let layouts = [
            ("rows", a.clone()),
            ("columns", a.transpose()?),
            ("permuted", a.transpose_axes(&[1, 0, 2])?),
            ("part", a.slice(&[0, 1, 1], &[2, 3, 4], &[1, 1, 2])?),
            ("reversed", row.flip(None)?),
            ("broadcast", row.broadcast_to(&[3, 4])?),
            ("scalar", a.slice(&[1, 1, 1], &[2, 2, 2], &[1, 1, 1])?.reshape::<isize>(&[])?),
            ("empty", Array::zeros(&[3, 0, 2], dtype)?.transpose()?),
            ("one", row.slice(&[1], &[2], &[1])?),
        ];
        out.extend(layouts.map(|(layout, a)| (format!("{dtype}/{layout}"), a)));
    }
    Ok(out)
}

fn npy_bytes(a: &Array) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    npy::write(&mut out, a, "memory")?;
    Ok(out)
}

fn npz_bytes(arrays: &Arrays, compressed: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    npz::write(&mut out, arrays, compressed, "memory")?;
    Ok(out)
}

fn safetensors_bytes(arrays: &Arrays, metadata: &Metadata) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    safetensors::write(&mut out, arrays, metadata, "memory")?;
    Ok(out)
}

fn assert_all_same(a: &Arrays, b: &Arrays) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, a) in a {
        assert_same(a, &b[name], name);
    }
}

#[test]
fn npy_round_trips() -> Result<()> {
    let folder = Folder::new("npy");
    for (name, a) in samples()? {
        let path = folder.file("array.npy");
        npy::save(&path, &a)?;
        let Loaded::Array(b) = load(&path)? else { panic!("npy holds one array") };
        assert_same(&a, &b, &name);
        let data = npy_bytes(&a)?;
        assert_eq!(data, fs::read(&path).expect("the file"), "{name}");
        assert_eq!((data.len() - a.nbytes()) % 64, 0, "{name}");
        let fortran = String::from_utf8_lossy(&data).contains("'fortran_order': True");
        assert_eq!(fortran, name.ends_with("columns"), "{name}");
    }
    assert_eq!(folder.names(), ["array.npy"]);
    Ok(())
}

#[test]
fn npy_arrays_follow_one_another() -> Result<()> {
    let a = Array::from_slice(&[1i32, 2, 3], &[3])?;
    let b = Array::from_slice(&[1.5f32], &[1, 1])?;
    let mut file = Cursor::new([npy_bytes(&a)?, npy_bytes(&b)?].concat());
    assert_same(&npy::read(&mut file, "memory")?, &a, "first");
    assert_same(&npy::read(&mut file, "memory")?, &b, "second");
    assert!(npy::read(&mut file, "memory").is_err());
    Ok(())
}

#[test]
fn npz_round_trips() -> Result<()> {
    let folder = Folder::new("npz");
    let arrays = samples()?;
    for compressed in [false, true] {
        let path = folder.file("arrays");
        if compressed { npz::save_compressed(&path, &arrays) } else { npz::save(&path, &arrays) }?;
        assert_eq!(folder.names(), ["arrays.npz"]);
        let Loaded::Arrays(read) = load(folder.file("arrays.npz"))? else { panic!("a map") };
        assert_all_same(&arrays, &read);
        let stream = npz_bytes(&arrays, compressed)?;
        assert_all_same(&arrays, &npz::read(&mut Cursor::new(stream), "memory")?);
    }
    assert!(npz::read(&mut Cursor::new(npz_bytes(&Arrays::new(), false)?), "empty")?.is_empty());
    // Much more can be packed into little than its size lets expect.
    let zeros = Arrays::from([("z".to_owned(), Array::zeros(&[1 << 20], Dtype::Float32)?)]);
    let packed = npz_bytes(&zeros, true)?;
    assert!(packed.len() < 8192, "{}", packed.len());
    assert_all_same(&zeros, &npz::read(&mut Cursor::new(packed), "memory")?);
    Ok(())
}

#[test]
fn safetensors_round_trip() -> Result<()> {
    let folder = Folder::new("safetensors");
    let arrays = samples()?;
    let text = Metadata::from([("format".into(), "\"é\\\n".into()), ("".into(), "x".into())]);
    for metadata in [Metadata::new(), text] {
        let path = folder.file("model.safetensors");
        safetensors::save(&path, &arrays, &metadata)?;
        let Loaded::Safetensors(read, found) = load(&path)? else { panic!("with metadata") };
        assert_all_same(&arrays, &read);
        assert_eq!(found, metadata);
        let data = fs::read(&path).expect("the file");
        assert!(data == safetensors_bytes(&arrays, &metadata)?, "equal arrays, equal files");
        assert_eq!(u64::from_le_bytes(data[..8].try_into().expect("8 bytes")) % 8, 0);
    }
    let (none, _) = safetensors::read(
        &mut Cursor::new(safetensors_bytes(&Arrays::new(), &Metadata::new())?),
        "empty",
    )?;
    assert!(none.is_empty());
    let bad = Arrays::from([("__metadata__".to_owned(), Array::scalar(1.0f32))]);
    assert!(matches!(safetensors_bytes(&bad, &Metadata::new()), Err(Error::Value(_))));
    Ok(())
}

/// An npy file with that header and data.
fn crafted_npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([version, 0]);
    match version {
        1 => out.extend((header.len() as u16).to_le_bytes()),
        _ => out.extend((header.len() as u32).to_le_bytes()),
    }
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

fn crafted_safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

#[test]
fn foreign_npy_headers() -> Result<()> {
    let f32s: Vec<u8> = [1f32, 2.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let accepted = [
        (1, "{'descr':'>f4','shape':(2,),'fortran_order':False}\n", f32s.clone(), Dtype::Float32),
        (
            2,
            "{ \"shape\" : ( 2L , ) ,'descr': '>f4', 'fortran_order': True ,}",
            f32s,
            Dtype::Float32,
        ),
        (3, "{'fortran_order':False,'descr':'|b1','shape':(2)}", vec![7, 0], Dtype::Bool),
        (
            1,
            "{'fortran_order':False,'descr':'|V2','shape':(2,1,)}",
            vec![0x80, 0x3f, 0, 0x40],
            Dtype::Bfloat16,
        ),
    ];
    for (version, header, data, dtype) in accepted {
        let file = crafted_npy(version, header, &data);
        let a = npy::read(&mut Cursor::new(file), "memory")?;
        assert_eq!(a.dtype(), dtype, "{header}");
        let expected = if dtype == Dtype::Bool { [1.0, 0.0] } else { [1.0f32, 2.0] };
        assert_eq!(a.astype(Dtype::Float32).to_vec::<f32>()?, expected, "{header}");
    }
    // Big-endian complex numbers are swapped by their parts.
    let parts: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let file = crafted_npy(1, "{'descr':'>c8','shape':(2,),'fortran_order':False}", &parts);
    let a = npy::read(&mut Cursor::new(file), "memory")?;
    assert_eq!(bytes(&a), [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
    Ok(())
}

#[test]
fn bad_npy_headers() {
    let dict = |descr: &str, order: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")
    };
    let good = dict("'<f4'", "False", "(2,)");
    assert!(npy::read(&mut Cursor::new(crafted_npy(1, &good, &[0; 8])), "good").is_ok());
    let runtime = [
        dict("'<f4'", "False", "(3,)"),
        dict("'<f4'", "False", "(1000000000000,)"),
        dict("'<f4'", "False", "(4294967296, 4294967296, 4294967296)"),
        dict("'<f4'", "False", "(0, 18446744073709551615, 18446744073709551615)"),
        dict("'<f4'", "False", "(99999999999999999999999,)"),
        dict("'<f4'", "False", "(-1,)"),
        dict("'<f4'", "False", "2"),
        dict("'<f4'", "False", "(2"),
        dict("'<f4'", "False", "(2,,)"),
        dict("'<f4'", "False", "(,)"),
        dict("'<f4'", "False", "(2.0,)"),
        dict("'<f4'", "False", &format!("({})", "1,".repeat(1000))),
        dict("'<f4'", "Maybe", "(2,)"),
        dict("'<f4'", "1", "(2,)"),
        "{'descr': '<f4".into(),
        dict("4", "False", "(2,)"),
        "{'descr': '<f4', 'fortran_order': False}".into(),
        "{'descr': '<f4', 'shape': (2,)}".into(),
        "{'shape': (2,), 'fortran_order': False}".into(),
        "{'shape': (2,), 'fortran_order': False, 'more': 1, 'descr': '<f4'}".into(),
        "{}".into(),
        "".into(),
        "   \n".into(),
        "[1, 2]".into(),
        format!("{good} x"),
        good.trim_end().trim_end_matches('}').into(),
        good.replace(',', ""),
        good.replace(':', ""),
    ];
    for header in runtime {
        let file = crafted_npy(1, &header, &[0; 8]);
        let error = npy::read(&mut Cursor::new(file), "NAME").err();
        let Some(Error::Runtime(text)) = error else { panic!("{header}: {error:?}") };
        assert!(text.contains("NAME"), "{text}");
    }
    let unsupported = [
        "'<c16'",
        "'<U1'",
        "'|S2'",
        "'|O'",
        "'<M8[s]'",
        "''",
        "'f4'",
        "'<V4'",
        "[('a', '<i4')]",
        "'é'",
    ];
    for descr in unsupported {
        let file = crafted_npy(1, &dict(descr, "False", "(2,)"), &[0; 64]);
        let error = npy::read(&mut Cursor::new(file), "NAME").err();
        assert!(matches!(error, Some(Error::Value(_))), "{descr}: {error:?}");
    }
    for version in [0, 4, 255] {
        let file = crafted_npy(version, &good, &[0; 8]);
        assert!(npy::read(&mut Cursor::new(file), "NAME").is_err(), "{version}");
    }
    // Lengths of headers that are not there.
    for length in [0xffffu32, 0xffff_ffff] {
        let mut file = crafted_npy(2, &good, &[0; 8]);
        file[8..12].copy_from_slice(&length.to_le_bytes());
        assert!(npy::read(&mut Cursor::new(file), "NAME").is_err(), "{length}");
    }
}

#[test]
fn safetensors_headers() {
    let one = |dtype: &str, shape: &str, offsets: &str| {
        format!("{{\"a\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}")
    };
    let two = |a: &str, b: &str| {
        let tensor = |o| format!("{{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{o}}}");
        format!("{{\"a\":{},\"b\":{}}}", tensor(a), tensor(b))
    };
    let null = one("F32", "[2]", "[0,8]").replacen('{', "{\"__metadata__\":null,", 1);
    let good = [
        (one("F32", "[2]", "[0,8]"), 8),
        (null, 8),
        (two("[8,16]", "[0,8]"), 16),
        (one("F8_E4M3", "[8]", "[0,8]"), 8),
        (one("F64", "[]", "[0,8]"), 8),
        ("{}   ".into(), 0),
    ];
    for (header, data) in good {
        let file = crafted_safetensors(&header, &vec![0; data]);
        let result = safetensors::read(&mut Cursor::new(file), "NAME");
        assert!(result.is_ok(), "{header}: {:?}", result.err());
    }
    let bad = [
        (one("F32", "[1]", "[0,8]"), 8),
        (one("F32", "[2]", "[0,8]"), 9),
        (one("F32", "[2]", "[0,8]"), 7),
        (one("F32", "[2]", "[8,16]"), 16),
        (one("F32", "[2]", "[8,0]"), 8),
        (one("F32", "[2]", "[-8,0]"), 8),
        (one("F32", "[250000000000]", "[0,1000000000000]"), 8),
        (one("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), 8),
        (one("F32", "[0,18446744073709551615,18446744073709551615]", "[0,0]"), 0),
        (one("F32", "[99999999999999999999999]", "[0,8]"), 8),
        (one("F32", &format!("[{}2]", "1,".repeat(1000)), "[0,8]"), 8),
        (one("F4", "[16]", "[0,8]"), 8),
        (one("F8_E5M2", "[8]", "[0,8]"), 8),
        (one("float32", "[2]", "[0,8]"), 8),
        (one("F32", "2", "[0,8]"), 8),
        (one("F32", "[2]", "[0]"), 8),
        (two("[0,8]", "[4,12]"), 12),
        (two("[0,8]", "[0,8]"), 8),
        (two("[0,8]", "[12,20]"), 20),
        ("{\"a\"".into(), 0),
        ("[]".into(), 0),
        ("".into(), 0),
        ("{\"__metadata__\":{\"x\":1}}".into(), 0),
        ("[".repeat(100_000), 0),
        (format!("{{\"a\":{}", "[".repeat(100_000)), 0),
    ];
    for (header, data) in bad {
        let file = crafted_safetensors(&header, &vec![0; data]);
        let error = safetensors::read(&mut Cursor::new(file), "NAME").err();
        let Some(Error::Runtime(text)) = error else { panic!("{header:.100}: {error:?}") };
        assert!(text.contains("NAME"), "{text}");
    }
    for length in [100u64, 99_999_999, 1 << 40, u64::MAX] {
        let file = [&length.to_le_bytes()[..], b"{}"].concat();
        assert!(safetensors::read(&mut Cursor::new(file), "NAME").is_err(), "{length}");
    }
}

#[test]
fn truncated_files() -> Result<()> {
    let a = Array::from_slice(&[1.0f32; 300], &[30, 10])?;
    let b = Array::from_slice(&[5u8; 33], &[33])?;
    let arrays = Arrays::from([("a".to_owned(), a.clone()), ("b".to_owned(), b)]);
    let metadata = Metadata::from([("k".to_owned(), "v".to_owned())]);
    let files = [
        (Format::Npy, npy_bytes(&a)?),
        (Format::Npz, npz_bytes(&arrays, false)?),
        (Format::Npz, npz_bytes(&arrays, true)?),
        (Format::Safetensors, safetensors_bytes(&arrays, &metadata)?),
    ];
    for (format, file) in files {
        assert!(read(&mut Cursor::new(&file[..]), format, "whole").is_ok());
        let step = 1 + file.len() / 500;
        for n in (0..file.len()).filter(|n| n % step == 0 || *n < 200 || n + 200 > file.len()) {
            let result = read(&mut Cursor::new(&file[..n]), format, "NAME");
            let text = result.err().map(|e| e.to_string());
            assert!(text.is_some_and(|t| t.contains("NAME")), "{format:?} cut to {n}");
        }
    }
    Ok(())
}

/// Whatever byte is wrong, reading ends with a result and takes no more memory than
/// the file may hold; where a checksum covers the byte, the result is an error.
#[test]
fn damaged_bytes() -> Result<()> {
    let a = Array::from_slice(&[1.0f32; 20], &[4, 5])?;
    let arrays = Arrays::from([("a".to_owned(), a.clone()), ("b".to_owned(), a.clone())]);
    let files = [
        (Format::Npy, npy_bytes(&a)?),
        (Format::Npz, npz_bytes(&arrays, false)?),
        (Format::Npz, npz_bytes(&arrays, true)?),
        (Format::Safetensors, safetensors_bytes(&arrays, &Metadata::new())?),
    ];
    for (format, file) in files {
        for at in 0..file.len() {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                match read(&mut Cursor::new(damaged), format, "NAME") {
                    Ok(Loaded::Array(a)) => assert!(a.nbytes() <= file.len()),
                    Ok(Loaded::Arrays(all)) => {
                        for (name, found) in all {
                            assert_same(&found, &a, &format!("{name}, {at} ^ {flip}"));
                        }
                    }
                    Ok(Loaded::Safetensors(all, _)) => {
                        assert!(all.values().map(Array::nbytes).sum::<usize>() <= file.len())
                    }
                    Err(e) => assert!(e.to_string().contains("NAME"), "{e}"),
                }
            }
        }
    }
    Ok(())
}

#[test]
fn archives_that_claim_too_much() -> Result<()> {
    let a = Array::from_slice(&[1.0f32; 20], &[4, 5])?;
    let names = ["a", "b", "c", "d"];
    let arrays: Arrays = names.map(|n| (n.to_owned(), a.clone())).into();
    let folder = Folder::new("claims");
    let path = folder.file("x.npz");
    for compressed in [false, true] {
        if compressed { npz::save_compressed(&path, &arrays) } else { npz::save(&path, &arrays) }?;
        let file = fs::read(&path).expect("the file");
        // The records of the directory at the archive's end.
        let records: Vec<usize> =
            (0..file.len() - 4).filter(|i| file[*i..].starts_with(b"PK\x01\x02")).collect();
        assert_eq!(records.len(), 4);
        // Packed size, size, offset; the last lets two members share their bytes.
        for (field, values) in [
            (20, [1 << 30, 0xffff_fff0, 0]),
            (24, [1 << 30, 0xffff_fff0, 0]),
            (42, [1 << 30, 1, 7]),
        ] {
            for value in values {
                let mut lying = file.clone();
                let at = records[2] + field;
                lying[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
                let error = npz::read(&mut Cursor::new(lying), "NAME").err();
                assert!(error.is_some(), "{compressed}: {field} = {value}");
            }
        }
        assert!(npz::read(&mut Cursor::new(b"PK\x05\x06 and no more"), "NAME").is_err());
    }
    Ok(())
}

#[test]
fn wrong_files_and_names() -> Result<()> {
    let folder = Folder::new("names");
    let a = Array::scalar(1.5f32);
    let arrays = Arrays::from([("a".to_owned(), a.clone())]);
    npy::save(folder.file("noext"), &a)?;
    npy::save(folder.file("x.foo"), &a)?;
    npz::save(folder.file("x.NPZ"), &arrays)?;
    safetensors::save(folder.file("s"), &arrays, &Metadata::new())?;
    assert_eq!(folder.names(), ["noext.npy", "s.safetensors", "x.NPZ.npz", "x.foo.npy"]);

    let text = |result: Result<Loaded>| result.err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(text(load("x.foo")), "[load] Unknown file format foo");
    assert_eq!(text(load("x")), "[load] Could not infer file format from extension");
    assert!(matches!(load("missing.foo"), Err(Error::Value(_))));
    let missing = |name: &str| load(folder.file(name));
    assert!(matches!(missing("missing.npy"), Err(Error::Runtime(t)) if t.contains("missing.npy")));
    assert!(matches!(missing("missing.safetensors"), Err(Error::Runtime(_))));
    assert!(matches!(missing("missing.npz"), Err(Error::Value(_))));
    fs::copy(folder.file("noext.npy"), folder.file("wrong.npz")).expect("copies");
    fs::copy(folder.file("noext.npy"), folder.file("wrong.safetensors")).expect("copies");
    fs::copy(folder.file("s.safetensors"), folder.file("wrong.npy")).expect("copies");
    assert!(matches!(missing("wrong.npz"), Err(Error::Value(_))));
    assert!(matches!(missing("wrong.safetensors"), Err(Error::Runtime(_))));
    assert!(matches!(missing("wrong.npy"), Err(Error::Runtime(_))));
    fs::create_dir(folder.file("folder.npy")).expect("a directory");
    assert!(missing("folder.npy").is_err());
    assert!(npy::save(folder.file("folder.npy"), &a).is_err());
    let nowhere = folder.file("nowhere/x");
    assert!(matches!(npy::save(&nowhere, &a), Err(Error::Runtime(_))));
    assert!(matches!(npz::save(&nowhere, &arrays), Err(Error::Io { .. })));
    Ok(())
}

/// A writer that has no more room than it is given, as a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = data.len().min(self.0);
        self.0 -= n;
        if n == 0 && !data.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failing_writers_and_readers() -> Result<()> {
    let a = Array::from_slice(&[1.0f32; 300], &[300])?;
    let arrays = Arrays::from([("a".to_owned(), a.clone())]);
    for room in [0, 5, 100, 1000] {
        assert!(npy::write(&mut Full(room), &a, "x").is_err());
        assert!(npz::write(&mut Full(room), &arrays, false, "x").is_err());
        assert!(safetensors::write(&mut Full(room), &arrays, &Metadata::new(), "x").is_err());
    }

    /// Says that it is longer than it is.
    struct Boasting(Cursor<Vec<u8>>);
    impl Read for Boasting {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            self.0.read(target)
        }
    }
    impl Seek for Boasting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            match to {
                SeekFrom::End(_) => Ok(1 << 20),
                to => self.0.seek(to),
            }
        }
    }
    let mut cut = npy_bytes(&a)?;
    cut.truncate(700);
    assert!(npy::read(&mut Boasting(Cursor::new(cut)), "x").is_err());
    Ok(())
}

#[test]
fn a_failure_leaves_the_old_file() -> Result<()> {
    let folder = Folder::new("replace");
    let path = folder.file("x.safetensors");
    let arrays = Arrays::from([("a".to_owned(), Array::from_slice(&[7i32; 4], &[4])?)]);
    safetensors::save(&path, &arrays, &Metadata::new())?;
    let before = fs::read(&path).expect("the file");
    // Refused only when the file is about to be written.
    let bad = Arrays::from([("__metadata__".to_owned(), Array::scalar(1.0f32))]);
    assert!(safetensors::save(&path, &bad, &Metadata::new()).is_err());
    assert_eq!(fs::read(&path).expect("the file"), before);
    assert_eq!(folder.names(), ["x.safetensors"]);
    Ok(())
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("links");
    let (target, link) = (folder.file("target.npy"), folder.file("link.npy"));
    npy::save(&target, &Array::scalar(1i32))?;
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("chmod");
    symlink(&target, &link).expect("a link");
    npy::save(&link, &Array::scalar(2i32))?;
    assert!(link.is_symlink());
    assert_eq!(npy::load(&target)?.item::<i32>()?, 2);
    let mode = fs::metadata(&target).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    Ok(())
}
