// The contract's codes of float64 that these functions serve.

fn unary_exp(x: f64) -> f64 { return exp_f64(x); }
fn unary_expm1(x: f64) -> f64 { return expm1_f64(x); }
fn unary_log(x: f64) -> f64 { return log_f64(x); }
fn unary_log2(x: f64) -> f64 { return log2_f64(x); }
fn unary_log10(x: f64) -> f64 { return log10_f64(x); }
fn unary_log1p(x: f64) -> f64 { return log1p_f64(x); }
fn unary_sin(x: f64) -> f64 { return sin_f64(x); }
fn unary_cos(x: f64) -> f64 { return cos_f64(x); }
fn unary_tan(x: f64) -> f64 { return tan_f64(x); }
fn unary_arcsin(x: f64) -> f64 { return arcsin_f64(x); }
fn unary_arccos(x: f64) -> f64 { return arccos_f64(x); }
fn unary_arctan(x: f64) -> f64 { return arctan_f64(x); }
fn unary_sinh(x: f64) -> f64 { return sinh_f64(x); }
fn unary_cosh(x: f64) -> f64 { return cosh_f64(x); }
fn unary_tanh(x: f64) -> f64 { return tanh_f64(x); }
fn unary_arcsinh(x: f64) -> f64 { return arcsinh_f64(x); }
fn unary_arccosh(x: f64) -> f64 { return arccosh_f64(x); }
fn unary_arctanh(x: f64) -> f64 { return arctanh_f64(x); }
fn unary_erf(x: f64) -> f64 { return erf_f64(x); }
fn unary_erfinv(x: f64) -> f64 { return erfinv_f64(x); }
fn unary_sigmoid(x: f64) -> f64 { return sigmoid_f64(x); }

fn binary_power(x: f64, y: f64) -> f64 { return power_f64(x, y); }
fn binary_logaddexp(x: f64, y: f64) -> f64 { return logaddexp_f64(x, y); }
fn binary_arctan2(x: f64, y: f64) -> f64 { return arctan2_f64(x, y); }
