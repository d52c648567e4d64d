//! What bodies find: layouts, shapes, strides, names of threads, several outputs, first values, atomics.

use super::*;
use crate::opencl_process;
use ultramarine::fast::Template;

#[test]
fn elementwise_with_threads_beyond_the_grid() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let square = kernel(
        "square",
        &["x"],
        &["y"],
        "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
    )?;
    for n in [1, 63, 64, 65, 1000] {
        let got = run(gpu, &square, &[&count(&[n])?], &line(n))?.to_vec::<f32>()?;
        assert!(got.iter().enumerate().all(|(i, v)| *v == (i * i) as f32), "{n}");
    }
    Ok(())
}

/// Views of a (4, 6) array: with an offset, transposed, broadcast, backwards.
fn views() -> Result<Vec<Array>> {
    let x = count(&[4, 6])?;
    Ok(vec![
        x.clone(),
        x.slice(&[1, 0], &[4, 6], &[1, 1])?,
        x.slice(&[0, 1], &[4, 6], &[2, 2])?,
        x.transpose()?,
        x.slice(&[2, 0], &[3, 6], &[1, 1])?.broadcast_to(&[5, 6])?,
        x.slice(&[3, 5], &[-5, -7], &[-1, -2])?,
        count(&[2, 3, 4])?.transpose_axes([2, 0, 1])?,
    ])
}

#[test]
fn strides_are_walked_or_made_contiguous() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let plain = kernel("copy", &["x"], &["y"], "size_t i = get_global_id(0); y[i] = x[i];")?;
    let walked = "size_t i = get_global_id(0);\n\
                  y[i] = x[um_elem_to_loc(i, x_shape, x_strides, x_ndim)];";
    let walking = kernel("walk", &["x"], &["y"], walked)?.ensure_row_contiguous(false);
    for x in views()? {
        let launch =
            Launch::new([x.size() as u32, 1, 1], [32, 1, 1]).output(x.shape(), Dtype::Float32);
        let want = x.to_vec::<f32>()?;
        assert_eq!(run(gpu, &plain, &[&x], &launch)?.to_vec::<f32>()?, want, "{:?}", x.shape());
        assert_eq!(run(gpu, &walking, &[&x], &launch)?.to_vec::<f32>()?, want, "{:?}", x.shape());
        // The same on the device's own memory.
        let there = with_stream(gpu, || x.add(Array::scalar(0.0f32)))?;
        assert_eq!(run(gpu, &walking, &[&there], &launch)?.to_vec::<f32>()?, want);
    }
    Ok(())
}

#[test]
fn without_copies_the_body_sees_memory_as_it_is() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "y[0] = x_strides[0]; y[1] = x_strides[1]; y[2] = x_shape[0]; y[3] = x_shape[1]; y[4] = x_ndim;";
    let facts = kernel("facts", &["x"], &["y"], body)?;
    let x = count(&[3, 4])?.transpose()?;
    let launch = Launch::new([1, 1, 1], [1, 1, 1]).output(&[5], Dtype::Float32);
    let seen = |k: &Kernel, x: &Array| run(gpu, k, &[x], &launch)?.to_vec::<f32>();
    assert_eq!(seen(&facts.clone().ensure_row_contiguous(false), &x)?, [1.0, 4.0, 4.0, 3.0, 2.0]);
    assert_eq!(seen(&facts, &x)?, [3.0, 1.0, 4.0, 3.0, 2.0]);
    let row = count(&[3])?.broadcast_to(&[2, 3])?;
    assert_eq!(seen(&facts.ensure_row_contiguous(false), &row)?, [0.0, 1.0, 2.0, 3.0, 2.0]);
    Ok(())
}

#[test]
fn arrays_without_axes_and_without_elements() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "y[get_global_id(0)] = x[0] + n_ndim + s_ndim;";
    let k = kernel("small", &["x", "n", "s"], &["y"], body)?;
    let (none, scalar) = (Array::from_slice::<f32>(&[], &[0, 3])?, Array::scalar(2.0f32));
    let launch = line(2);
    assert_eq!(run(gpu, &k, &[&scalar, &none, &scalar], &launch)?.to_vec::<f32>()?, [4.0; 2]);
    let launch = Launch::new([1, 1, 1], [1, 1, 1]).output(&[], Dtype::Float32);
    assert_eq!(run(gpu, &k, &[&scalar, &none, &scalar], &launch)?.item::<f32>()?, 4.0);
    // Nothing to write, and nothing that runs.
    let launch = Launch::new([1, 0, 1], [1, 1, 1]).output(&[0], Dtype::Float32);
    assert_eq!(run(gpu, &k, &[&scalar, &none, &scalar], &launch)?.shape(), [0]);
    let launch = Launch::new([0, 1, 1], [8, 1, 1]).output(&[3], Dtype::Float32).init_value(7.0);
    assert_eq!(run(gpu, &k, &[&scalar, &none, &scalar], &launch)?.to_vec::<f32>()?, [7.0; 3]);
    Ok(())
}

#[test]
fn several_outputs_and_no_inputs() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body =
        "uint i = thread_position_in_grid.x; a[i] = i; b[i] = -(int)i; if (i < 2) c[i] = i == 1;";
    let k = kernel("three", &[], &["a", "b", "c"], body)?;
    let launch = Launch::new([5, 1, 1], [2, 1, 1])
        .output(&[5], Dtype::Float32)
        .output(&[5, 1], Dtype::Int32)
        .output(&[2], Dtype::Bool);
    let got = with_stream(gpu, || k.call(&[], &launch))?;
    assert_eq!(got[0].to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!((got[1].to_vec::<i32>()?, got[1].shape()), (vec![0, -1, -2, -3, -4], &[5, 1][..]));
    assert_eq!(got[2].to_vec::<bool>()?, [false, true]);
    Ok(())
}

#[test]
fn first_values_and_atomic_outputs() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let some = kernel("some", &[], &["y"], "if (get_global_id(0) == 1) y[1] = 5;")?;
    let got = run(gpu, &some, &[], &line(4).init_value(-1.5))?;
    assert_eq!(got.to_vec::<f32>()?, [-1.5, 5.0, -1.5, -1.5]);

    let bins = "um_atomic_add(T, y, (int)x[get_global_id(0)] % 4, 1);";
    let histogram = kernel("histogram", &["x"], &["y"], bins)?.atomic_outputs(true);
    let x = count(&[1000])?;
    for dtype in [Dtype::Int32, Dtype::Uint32, Dtype::Float32] {
        let launch = Launch::new([1000, 1, 1], [50, 1, 1])
            .output(&[4], dtype)
            .template("T", Template::Dtype(dtype))
            .init_value(0.0);
        let got = run(gpu, &histogram, &[&x], &launch)?.astype(Dtype::Int32);
        assert_eq!(got.to_vec::<i32>()?, [250; 4], "{dtype}");
    }
    Ok(())
}

#[test]
fn template_arguments() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "uint i = thread_position_in_grid.x;\n\
                um_compute(T) v = um_load(T, x, i) * N;\n\
                um_store(T, y, i, DOUBLED ? 2 * v : v);";
    let k = kernel("scale", &["x"], &["y"], body)?;
    let x = count(&[3])?;
    for dtype in [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16, Dtype::Int16, Dtype::Int64] {
        for (n, doubled) in [(3, false), (-2, true)] {
            let launch = Launch::new([3, 1, 1], [3, 1, 1])
                .output(&[3], dtype)
                .template("T", Template::Dtype(dtype))
                .template("N", Template::Int(n))
                .template("DOUBLED", Template::Bool(doubled));
            let got = run(gpu, &k, &[&x.astype(dtype)], &launch)?.astype(Dtype::Float32);
            let by = (n * if doubled { 2 } else { 1 }) as f32;
            assert_eq!(got.to_vec::<f32>()?, [0.0, by, 2.0 * by], "{dtype}");
        }
    }
    Ok(())
}

#[test]
fn names_of_threads() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "uint3 p = thread_position_in_grid, l = thread_position_in_threadgroup;\n\
        uint3 g = threadgroup_position_in_grid, n = threads_per_grid, t = threads_per_threadgroup;\n\
        uint at = (p.z * n.y + p.y) * n.x + p.x;\n\
        bool right = p.x == g.x * t.x + l.x && p.y == g.y * t.y + l.y && p.z == g.z * t.z + l.z;\n\
        right = right && thread_index_in_threadgroup == (l.z * t.y + l.y) * t.x + l.x;\n\
        right = right && threadgroups_per_grid.x == (n.x + t.x - 1) / t.x;\n\
        y[at] = right ? at : -1.0f;";
    let k = kernel("names", &[], &["y"], body)?;
    let launch = Launch::new([5, 3, 2], [2, 2, 2]).output(&[30], Dtype::Float32);
    let want: Vec<f32> = (0..30).map(|i| i as f32).collect();
    assert_eq!(run(gpu, &k, &[], &launch)?.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn shared_memory_and_barriers() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "__local float *s = (__local float *)um_shared;\n\
        uint l = thread_position_in_threadgroup.x, n = threads_per_threadgroup.x;\n\
        s[l] = x[thread_position_in_grid.x];\n\
        barrier(CLK_LOCAL_MEM_FENCE);\n\
        y[thread_position_in_grid.x] = s[n - 1 - l];";
    let k = kernel("turn", &["x"], &["y"], body)?.shared_memory(16 * 4);
    let launch = Launch::new([64, 1, 1], [16, 1, 1]).output(&[64], Dtype::Float32);
    let want: Vec<f32> = (0..64).map(|i| (i / 16 * 16 + 15 - i % 16) as f32).collect();
    assert_eq!(run(gpu, &k, &[&count(&[64])?], &launch)?.to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn a_header_comes_before() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let header = "float twice(float x) { return 2 * x; }";
    let k = kernel("head", &["x"], &["y"], "y[0] = twice(x[0]);")?.header(header);
    assert_eq!(run(gpu, &k, &[&Array::scalar(4.0f32)], &line(1))?.to_vec::<f32>()?, [8.0]);
    let own = k.header("no c at all").header_of("opencl-c", "#define twice(x) ((x) + 1)");
    assert_eq!(run(gpu, &own, &[&Array::scalar(4.0f32)], &line(1))?.to_vec::<f32>()?, [5.0]);
    Ok(())
}
