//! Files of other programs, cut short, or that lie.

use super::*;
use ultramarine::io::gguf;

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
        (one("F8_E5M2", "[8]", "[0,8]"), 8),
        (one("F4", "[16]", "[0,8]"), 8),
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
        (one("F4", "[15]", "[0,8]"), 8),
        (one("F8_E3M4", "[8]", "[0,8]"), 8),
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

/// A file that ends with data.
fn gguf_bytes() -> Result<Vec<u8>> {
    let arrays = Arrays::from([("a".to_owned(), Array::from_slice(&[1.0f32; 16], &[2, 8])?)]);
    let mut out = Vec::new();
    let metadata = gguf::Metadata::from([("k".into(), "v".into())]);
    gguf::write(&mut out, &arrays, &metadata, "memory")?;
    Ok(out)
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
        (Format::Gguf, gguf_bytes()?),
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
        (Format::Gguf, gguf_bytes()?),
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
                    Ok(Loaded::Safetensors(all, _) | Loaded::Gguf(all, _)) => {
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

/// A reader that looks at the memory that it is given.
struct Curious {
    file: Cursor<Vec<u8>>,
    /// A byte that was in the memory.
    seen: u8,
}

impl Read for Curious {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.seen |= target.iter().fold(0, |all, byte| all | byte);
        self.file.read(target)
    }
}

impl Seek for Curious {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn readers_see_no_memory_of_others() -> Result<()> {
    let n = 300_000;
    let file = npy_bytes(&Array::zeros(&[n], Dtype::Uint8)?)?;
    for _ in 0..20 {
        // Memory of this size is given back and taken again.
        let secret = Array::from_bytes(&vec![0x5a; n], &[n], Dtype::Uint8)?;
        secret.eval()?;
        drop(secret);
        let mut reader = Curious { file: Cursor::new(file.clone()), seen: 0 };
        let a = npy::read(&mut reader, "memory")?;
        assert_eq!((a.size(), reader.seen), (n, 0));
    }
    Ok(())
}
