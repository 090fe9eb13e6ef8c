"""Metal's text as C++: what is rewritten, and that lines stay where they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlx_kernels.emulator.bindings import Binding, bindings_of
from mlx_kernels.emulator.cpp_text import as_cpp
from mlx_kernels.emulator.metal_text import parts_of, tokens_of


def everything(_: str) -> bool:
    return True


def cpp(text: str, constants=None) -> str:
    return " ".join(as_cpp(text, constants or {}, everything).split())


REWRITTEN = {
    "threadgroup float a[4];": (
        "typedef float emulated_type_1[ 4 ]; "
        'auto& a = ::emulated_threadgroup_variable<1, emulated_type_1>("a");'
    ),
    "float x = 1.0;": "float x = 1.0f;",
    "float x = 1e-3 + .5 + 2.;": "float x = 1e-3f + .5f + 2.f;",
    "half h = 0.5h;": "half h = half(0.5f);",
    "bfloat b = 1.0bf;": "bfloat b = bfloat(1.0f);",
    "int x = 0x1e3 + 10u + 1;": "int x = 0x1e3 + 10u + 1;",
    "float x = 1.0f + 0x1.8p3f;": "float x = 1.0f + 0x1.8p3f;",
    'const char* s = "threadgroup 1.0";': 'const char* s = "threadgroup 1.0";',
    "const constant int& n": "const int& n",
    "constant int& n": "const int& n",
    "static constant constexpr const int N = 1;": "static constexpr const int N = 1;",
    # A pointer to threadgroup memory is no variable in it.
    "{ threadgroup float* p = a; }": "{ float* p = a; }",
    "void f(threadgroup T* a, const threadgroup T& b) {}": "void f( T* a, const T& b) {}",
    "void f() threadgroup {}": "void f() {}",
}


@pytest.mark.parametrize("metal", REWRITTEN)
def test_what_cpp_says_otherwise_is_rewritten(metal):
    assert cpp(metal) == REWRITTEN[metal]


def test_several_threadgroup_variables_of_one_declaration():
    text = cpp("threadgroup vec<T, 4> tile[N < 3 ? 1 : 2][8], total;")
    assert "typedef vec < T , 4 > emulated_type_1[ N < 3 ? 1 : 2 ] [ 8 ];" in text
    assert "typedef vec < T , 4 > emulated_type_2; auto& total" in text


def test_a_function_constant_takes_its_value_and_without_one_only_a_name():
    text = "constant bool flag [[function_constant(3)]];"
    assert cpp(text, {3: True}) == "static constexpr const bool flag = true;"
    assert cpp(text) == "extern const bool flag;"


PUNCTUATION = ["{", "}", "\n", "(", ")", ",", ";", "/", "'", '"s', "// c", "h"]
WORDS = ["constant", "const ", "threadgroup ", "static ", "[[buffer(1)]]"]
STATEMENTS = ["threadgroup float a[2];", "threadgroup T* p;", "x = 1.5;"]
PIECES = st.sampled_from([*PUNCTUATION, *WORDS, *STATEMENTS])


@given(st.lists(PIECES, max_size=30))
def test_every_line_stays_where_it_was(pieces):
    text = "\n".join(pieces)
    assert as_cpp(text, {}, everything).count("\n") == text.count("\n")


@given(st.text(max_size=200))
def test_tokens_and_parts_are_the_whole_text(text):
    assert "".join(token.text for token in tokens_of(text)) == text
    assert "".join(part for _, _, part in parts_of(text)) == text


def test_a_part_names_its_file_and_first_line():
    parts = parts_of('a\n# 7 "x.metal" 2\nb\n# 1 "y.h"\nc\n')
    assert [(file, part.splitlines()[-1]) for file, _, part in parts] == [
        ("", "a"),
        ("x.metal", "b"),
        ("y.h", "c"),
    ]
    # The marker itself stands on the line before.
    assert [line for _, line, _ in parts] == [1, 6, 0]


def test_the_bindings_of_a_kernels_parameters():
    text = """void f(int a);
template <typename T, int D = 4>
[[kernel]] void f(
    const device vec<T, 2>* x [[buffer(0)]],
    const device T* mask [[buffer(11), function_constant(has_mask)]],
    uint3 tid [[threadgroup_position_in_grid]]) { }
"""
    assert bindings_of(text, "f") == [
        Binding(0, None),
        Binding(11, None),
        Binding(None, "threadgroup_position_in_grid"),
    ]
    with pytest.raises(KeyError):
        bindings_of(text, "g")
    with pytest.raises(ValueError, match="not bound"):
        bindings_of("void f(int a) {}", "f")
