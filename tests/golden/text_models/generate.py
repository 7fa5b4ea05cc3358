#!/usr/bin/env python3
"""Writes two small language models of transformers, and what they compute, for hugging_face_test.

    gpt2/config.json, gpt2/model.safetensors      a GPT-2 with a tied head
    llama/config.json, llama/model.safetensors    a Llama with 4 heads, 2 of them of keys and values
    llama_linear/…, llama_llama3/…                the same with scaled positions. Of llama3's angles the first stays,
                                                  the second is between, and the others are divided.
                                                  llama_linear is in files of 50 KB, with their index.
    gpt2/computed.safetensors, …                  tokens [2, 12], logits [2, 12, 97] and
                                                  greedy [2, 20]: the tokens and 8 more by argmax

Weights are drawn after torch.manual_seed(1): normal with a deviation of 0.15, around 1 for norms.
"""
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))


def llama(**rope):
    config = transformers.LlamaConfig(
        vocab_size=97, max_position_embeddings=24, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=80, rms_norm_eps=1e-6,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=0, **rope)
    return transformers.LlamaForCausalLM(config)


def models():
    gpt2 = transformers.GPT2Config(
        vocab_size=97, n_positions=24, n_embd=32, n_layer=2, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    linear = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    llama3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 0.5,
              "high_freq_factor": 2.0, "original_max_position_embeddings": 16}
    return {"gpt2": transformers.GPT2LMHeadModel(gpt2), "llama": llama(),
            "llama_linear": llama(rope_parameters=linear), "llama_llama3": llama(rope_parameters=llama3)}


def fill(model):
    for name, parameter in model.named_parameters():
        around = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
        torch.nn.init.normal_(parameter, around, 0.15)


def main():
    print(f"torch {torch.__version__}, transformers {transformers.__version__}", file=sys.stderr)
    for name, model in models().items():
        torch.manual_seed(1)
        fill(model)
        model.eval()
        tokens = torch.randint(1, 97, (2, 12))
        with torch.no_grad():
            logits = model(tokens).logits
            greedy = tokens
            for _ in range(8):
                best = model(greedy).logits[:, -1].argmax(-1, keepdim=True)
                greedy = torch.cat([greedy, best], 1)
        folder = os.path.join(HERE, name)
        model.save_pretrained(folder, **({"max_shard_size": "50KB"} if name == "llama_linear" else {}))
        save_file({"tokens": tokens, "logits": logits.float(), "greedy": greedy},
                  os.path.join(folder, "computed.safetensors"),
                  {"made_by": f"torch {torch.__version__}, transformers {transformers.__version__}"})
        os.remove(os.path.join(folder, "generation_config.json"))


if __name__ == "__main__":
    main()
