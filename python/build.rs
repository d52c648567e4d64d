//! Makes the interpreter's configuration known to the code (`Py_GIL_DISABLED`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
