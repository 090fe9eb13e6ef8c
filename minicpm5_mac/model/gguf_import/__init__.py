"""A llama-architecture GGUF file becomes a folder that mlx-lm loads.

reading: the file's metadata and tensors. configuration: metadata to config.json.
blocks: GGUF's quantized blocks to MLX's affine form. weights: all tensors, under MLX's names.
tokenizer, bpe_vocabulary, spm_vocabulary, pre_tokenizers: metadata to tokenizer.json.
folder: the whole import.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""
