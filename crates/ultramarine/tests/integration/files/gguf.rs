//! GGUF files. `python/tests/arrays/test_gguf*.py` compares all types with other programs.

use super::*;
use ultramarine::io::gguf::{self, Metadata, Options, Packing, Value};

fn metadata() -> Metadata {
    let row = |numbers: &[f64]| Array::from_slice(numbers, &[numbers.len()]).expect("an array");
    let list = Value::List(vec![row(&[1.0]).into(), Value::List(vec![])]);
    Metadata::from([
        ("general.architecture".into(), "llama".into()),
        ("general.alignment".into(), Array::scalar(64u32).into()),
        ("rates".into(), row(&[0.5, 0.1]).into()),
        ("words".into(), Value::List(vec!["a".into(), "ü".into()])),
        ("lists".into(), list),
        ("raw".into(), Value::Bytes(vec![255, 0])),
    ])
}

fn shown(metadata: &Metadata) -> String {
    let show = |value: &Value| match value {
        Value::Array(array) => format!("{} {:?} {:?}", array.dtype(), array.shape(), bytes(array)),
        other => format!("{other:?}"),
    };
    metadata.iter().map(|(key, value)| format!("{key}: {}\n", show(value))).collect()
}

/// A file of one tensor.
pub fn crafted(axes: &[u64], code: u32, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    for number in [1u64, 0, 1] {
        out.extend(number.to_le_bytes());
    }
    out.push(b'x');
    out.extend((axes.len() as u32).to_le_bytes());
    axes.iter().for_each(|size| out.extend(size.to_le_bytes()));
    out.extend(code.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.resize(out.len().next_multiple_of(32), 0);
    out.extend(data);
    out
}

fn read_one(file: Vec<u8>, options: Options) -> Result<Arrays> {
    Ok(gguf::read(&mut Cursor::new(file), options, "memory")?.0)
}

#[test]
fn files_over_themselves() -> Result<()> {
    let folder = Folder::new("gguf");
    let path = folder.file("a.gguf");
    let has = |dtype| Dtype::Int8 <= dtype && dtype <= Dtype::Int64 || dtype.is_floating();
    let arrays: Arrays = samples()?.into_iter().filter(|(_, array)| has(array.dtype())).collect();
    assert!(arrays.len() > 20);
    gguf::save(&path, &arrays, &metadata())?;
    let before = fs::read(&path).expect("the file");
    let (found, values) = gguf::load(&path)?;
    assert_eq!(shown(&values), shown(&metadata()));
    gguf::save(&path, &found, &values)?;
    assert_eq!(fs::read(&path).expect("the file"), before);
    assert_eq!(folder.names(), ["a.gguf"]);
    let Loaded::Gguf(found, _) = load(&path)? else { panic!("another kind of file") };
    assert!(found.keys().eq(arrays.keys()));
    for (name, array) in &arrays {
        assert_same(&found[name], array, name);
    }
    Ok(())
}

/// Q8_0: a scale of float16, and 32 codes of int8.
#[test]
fn blocks_are_packed_or_decoded() -> Result<()> {
    let block = [&0x3800u16.to_le_bytes()[..], &[2, 0xff], &[0; 30]].concat();
    let file = crafted(&[32], 8, 0, &block);
    let packed = read_one(file.clone(), Options::default())?;
    assert!(packed.keys().eq(["x", "x.biases", "x.scales"]));
    assert_eq!((packed["x"].shape(), packed["x"].dtype()), (&[8][..], Dtype::Uint32));
    assert_eq!(packed["x.biases"].astype(Dtype::Float32).to_vec::<f32>()?, [-64.0]);
    let options = Options { packing: Packing::Never, dtype: Dtype::Float32 };
    let numbers = read_one(file, options)?["x"].to_vec::<f32>()?;
    assert_eq!(numbers[..3], [1.0, -0.5, 0.0]);
    let options = Options { packing: Packing::Never, dtype: Dtype::Int8 };
    assert!(matches!(read_one(crafted(&[0], 0, 0, &[]), options), Err(Error::Value { .. })));
    Ok(())
}

#[test]
fn lying_sizes() -> Result<()> {
    let read = |file| read_one(file, Options::default());
    assert_eq!(read(crafted(&[2, 1], 0, 0, &[0; 8]))?["x"].shape(), [1, 2]);
    // Nothing is read of what is empty.
    assert_eq!(read(crafted(&[4, 0], 0, 32, &[]))?["x"].shape(), [0, 4]);
    let most = u64::MAX;
    let bad: [(&[u64], u32, u64, &str); 13] = [
        (&[3], 0, 0, "beyond the end"),
        (&[2], 0, 32, "beyond the end"),
        (&[2], 0, most - 31, "beyond the end"),
        (&[2], 0, 4, "no multiple of 32"),
        (&[most, most], 0, 0, "impossible sizes"),
        (&[1 << 32, 1 << 32], 24, 0, "impossible sizes"),
        (&[1 << 62, 1], 0, 0, "impossible sizes"),
        (&[1 << 62, 1], 8, 0, "beyond the end"),
        (&[0, 1 << 40, 1 << 40], 0, 0, "impossible shape"),
        (&[31], 8, 0, "no multiple of 32"),
        (&[], 8, 0, "no multiple of 32"),
        (&[2], 99, 0, "is unknown"),
        (&[1; 9], 0, 0, "has 9 axes"),
    ];
    for (axes, code, offset, text) in bad {
        match read(crafted(axes, code, offset, &[0; 8])) {
            Err(error @ Error::Runtime { .. }) => {
                let shown = error.to_string();
                assert!(shown.contains(text) && shown.contains("memory"), "{axes:?}: {shown}");
            }
            other => panic!("{axes:?} of {code} at {offset}: {:?}", other.map(|_| ())),
        }
    }
    Ok(())
}
