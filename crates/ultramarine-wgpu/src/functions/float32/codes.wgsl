// The contract's codes of float32 that these functions serve.

fn unary_exp(x: f32) -> f32 { return exp_f32(x); }
fn unary_expm1(x: f32) -> f32 { return expm1_f32(x); }
fn unary_log(x: f32) -> f32 { return log_f32(x); }
fn unary_log2(x: f32) -> f32 { return log2_f32(x); }
fn unary_log10(x: f32) -> f32 { return log10_f32(x); }
fn unary_log1p(x: f32) -> f32 { return log1p_f32(x); }
fn unary_sin(x: f32) -> f32 { return sin_f32(x); }
fn unary_cos(x: f32) -> f32 { return cos_f32(x); }
fn unary_tan(x: f32) -> f32 { return tan_f32(x); }
fn unary_arcsin(x: f32) -> f32 { return arcsin_f32(x); }
fn unary_arccos(x: f32) -> f32 { return arccos_f32(x); }
fn unary_arctan(x: f32) -> f32 { return arctan_f32(x); }
fn unary_sinh(x: f32) -> f32 { return sinh_f32(x); }
fn unary_cosh(x: f32) -> f32 { return cosh_f32(x); }
fn unary_tanh(x: f32) -> f32 { return tanh_f32(x); }
fn unary_arcsinh(x: f32) -> f32 { return arcsinh_f32(x); }
fn unary_arccosh(x: f32) -> f32 { return arccosh_f32(x); }
fn unary_arctanh(x: f32) -> f32 { return arctanh_f32(x); }
fn unary_erf(x: f32) -> f32 { return erf_f32(x); }
fn unary_erfinv(x: f32) -> f32 { return erfinv_f32(x); }
fn unary_sigmoid(x: f32) -> f32 { return sigmoid_f32(x); }

fn binary_floor_divide(x: f32, y: f32) -> f32 { return floor(rounded(quotient_whole_f32(x, y))); }
fn binary_power(x: f32, y: f32) -> f32 { return power_f32(x, y); }
fn binary_logaddexp(x: f32, y: f32) -> f32 { return logaddexp_f32(x, y); }
fn binary_arctan2(x: f32, y: f32) -> f32 { return arctan2_f32(x, y); }
