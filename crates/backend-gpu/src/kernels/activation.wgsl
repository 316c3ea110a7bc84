// The network's activation.

// Not a number stays so, unlike with max.
fn activate(x: vec4<f32>) -> vec4<f32> {
    if (MISH) {
        // With e = exp(x), tanh(ln(1 + e)) is n / (n + 2) where n = e * e + 2 * e. Beyond 20 it is 1 in 32 bits.
        let e = exp(select(x, vec4<f32>(20.0), x > vec4<f32>(20.0)));
        let n = e * (e + 2.0);
        return x * (n / (n + 2.0));
    }
    return select(x, vec4<f32>(0.0), x < vec4<f32>(0.0));
}
