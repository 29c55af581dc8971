// Value of an integer sum of the current. In double precision additions are not checked: one that has come to half of what 64 bits
// hold may run over in the next step, and is no number, which ends the run.
template <class T> __device__ __forceinline__ T current_of(long long sum, double scale) {
    if (sizeof(T) == 8 && (sum >= (1ll << 62) || sum < -(1ll << 62))) return T(__longlong_as_double(0x7ff8000000000000ll));
    return T(double(sum) * scale);
}
