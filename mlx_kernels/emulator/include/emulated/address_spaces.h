// Address spaces are not types here (strict_check.py makes them so): memory is told apart by its
// address while the kernel runs. `threadgroup` and `constant` are left to cpp_text.py.
#pragma once

#define device
#define thread
#define kernel

#define METAL_FUNC inline
#define METAL_CONST const

// The place of a call in the kernel's text, taken as a default argument.
#define EMULATED_PLACE \
  const char *emulated_file = __builtin_FILE(), unsigned emulated_line = __builtin_LINE()
#define EMULATED_HERE emulated_file, emulated_line

#define EMULATED_QUIET __attribute__((no_sanitize("thread", "undefined")))

extern "C" {
void* emulator_threadgroup_variable(int id, unsigned long bytes, unsigned long alignment,
                                    const char* name);
void emulator_threadgroup_barrier(unsigned flags, const char* file, unsigned line);
void emulator_simdgroup_barrier(unsigned flags, const char* file, unsigned line);
float emulator_simd_reduce_float(float, int op, const char* file, unsigned line);
int emulator_simd_reduce_int(int, int op, const char* file, unsigned line);
unsigned emulator_simd_reduce_uint(unsigned, int op, const char* file, unsigned line);
float emulator_simd_prefix_float(float, int op, int inclusive, const char* file, unsigned line);
int emulator_simd_prefix_int(int, int op, int inclusive, const char* file, unsigned line);
unsigned emulator_simd_prefix_uint(unsigned, int op, int inclusive, const char* file, unsigned line);
void emulator_simd_exchange(void* value, unsigned size, int source, const char* file, unsigned line);
unsigned emulator_simd_ballot(int predicate, const char* file, unsigned line);
unsigned emulator_lane();
void emulator_simdgroup_multiply_accumulate(float* values, const char* file, unsigned line);
void emulator_atomic_access(void* pointer, unsigned size, int loads, int stores);
}

template <int id, typename T>
inline T& emulated_threadgroup_variable(const char* name) {
  return *static_cast<T*>(emulator_threadgroup_variable(id, sizeof(T), alignof(T), name));
}
