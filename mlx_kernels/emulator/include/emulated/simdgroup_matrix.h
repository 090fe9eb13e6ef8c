// simdgroup_matrix: 8 by 8, spread over the 32 lanes as src/simdgroup.cpp says.
#pragma once

namespace metal {

template <typename T, int rows, int columns>
struct simdgroup_matrix {
  static_assert(rows == 8 && columns == 8, "simdgroup_matrix is 8 by 8");
  static_assert(is_floating_point_v<T>, "simdgroup_matrix holds float, half or bfloat");
  using storage_type = vec<T, 2>;
  storage_type elements;
  // What a fresh matrix holds is undefined: NaN, so that a kernel that relies on zeros shows it.
  simdgroup_matrix() : elements(T(__builtin_nanf("")), T(__builtin_nanf(""))) {}
  // The value on the diagonal, zeros elsewhere.
  explicit simdgroup_matrix(T diagonal) {
    for (int i = 0; i < 2; i++) elements[i] = emulated_row() == emulated_column() + i ? diagonal : T(0.0f);
  }
  storage_type& thread_elements() { return elements; }
  const storage_type& thread_elements() const { return elements; }
  static int emulated_row() {
    int lane = int(emulator_lane());
    return ((lane / 4) & 4) + (lane / 2) % 4;
  }
  static int emulated_column() {
    int lane = int(emulator_lane());
    return ((lane / 4) & 2) * 2 + (lane % 2) * 2;
  }
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <typename T, int columns, int rows = columns>
inline simdgroup_matrix<T, columns, rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, columns, rows> m;
  m.elements = vec<T, 2>(value, value);
  return m;
}

template <typename T>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* from, ulong elements_per_row = 8,
                           vec<ulong, 2> origin = vec<ulong, 2>(0ul, 0ul), bool transpose = false) {
  ulong row = ulong(m.emulated_row()), column = ulong(m.emulated_column());
  from += origin.y * elements_per_row + origin.x;
  for (int i = 0; i < 2; i++)
    m.elements[i] = transpose ? from[(column + ulong(i)) * elements_per_row + row]
                              : from[row * elements_per_row + column + ulong(i)];
}
template <typename T>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* to, ulong elements_per_row = 8,
                            vec<ulong, 2> origin = vec<ulong, 2>(0ul, 0ul), bool transpose = false) {
  ulong row = ulong(m.emulated_row()), column = ulong(m.emulated_column());
  to += origin.y * elements_per_row + origin.x;
  for (int i = 0; i < 2; i++) {
    if (transpose) {
      to[(column + ulong(i)) * elements_per_row + row] = m.elements[i];
    } else {
      to[row * elements_per_row + column + ulong(i)] = m.elements[i];
    }
  }
}

// d = a b + c, summed in float and rounded once to d's type.
template <typename D, typename A, typename B, typename C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d,
                                          const simdgroup_matrix<A, 8, 8>& a,
                                          const simdgroup_matrix<B, 8, 8>& b,
                                          const simdgroup_matrix<C, 8, 8>& c, EMULATED_PLACE) {
  float values[6] = {float(a.elements.x), float(a.elements.y), float(b.elements.x),
                     float(b.elements.y), float(c.elements.x), float(c.elements.y)};
  emulator_simdgroup_multiply_accumulate(values, EMULATED_HERE);
  d.elements = vec<D, 2>(D(values[0]), D(values[1]));
}
template <typename D, typename A, typename B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                               const simdgroup_matrix<B, 8, 8>& b, EMULATED_PLACE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8>(D(0.0f)),
                                EMULATED_HERE);
}
template <typename T>
inline simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8>& a,
                                           const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

}  // namespace metal
