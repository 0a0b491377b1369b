#!/usr/bin/env python3
"""Tokens a second of `shardwright-mpi bench model` beside those of PyTorch, in turns.

Run by hand; nothing needs it to build or to test:

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install torch transformers numpy
    /tmp/peer/bin/python bench/compare_torch.py --threads 1 build/release/bin/shardwright-mpi

Both sides have the sizes of SmolLM-135M and random weights. A turn is a measurement of each, and of each the best
turn counts. On one thread the time is the thread's own on both sides.
"""
import argparse
import json
import os
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("program", help="build/release/bin/shardwright-mpi")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--turns", type=int, default=3)
parser.add_argument("--rounds", type=int, default=3, help="of each side in a turn")
arguments = parser.parse_args()

# Before torch is loaded: its threads stay on their cores and sleep while ours work, which starts without all that.
cores = os.sched_getaffinity(0)
plain = dict(os.environ)
os.environ.update(OMP_NUM_THREADS=str(arguments.threads), OMP_PROC_BIND="true", OMP_PLACES="cores",
                  OMP_WAIT_POLICY="passive")
import torch  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

torch.set_num_threads(arguments.threads)
torch.manual_seed(1)
clock = time.thread_time if arguments.threads == 1 else time.perf_counter
config = LlamaConfig(hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
                     intermediate_size=1536, vocab_size=49152, max_position_embeddings=2048,
                     tie_word_embeddings=True)


def prefill(model, tokens):
    with torch.no_grad():
        model(tokens, logits_to_keep=1, use_cache=True)


def decode_after(model, tokens):
    """A call that makes one token more, which the cache then forgets."""
    with torch.no_grad():
        cache = model(tokens, logits_to_keep=1, use_cache=True).past_key_values

    def call(model, tokens):
        with torch.no_grad():
            model(tokens[:, :1], past_key_values=cache, use_cache=True)
        cache.crop(tokens.shape[1])

    return call


def train(model, tokens):
    model.zero_grad(set_to_none=False)
    model(tokens, labels=tokens, use_cache=False).loss.backward()


def rate(call, model, tokens, n_tokens):
    call(model, tokens)
    best = float("inf")
    for _ in range(arguments.rounds):
        began = clock()
        call(model, tokens)
        best = min(best, clock() - began)
    return n_tokens / best


def ours():
    """Section and name of each row, and its tokens a second."""
    line = [arguments.program, "bench", "model", "--json", "--threads", str(arguments.threads),
            "--rounds", str(arguments.rounds)]
    done = subprocess.run(line, check=True, capture_output=True, env=plain,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    results = json.loads(done.stdout)["results"]
    return {(r["section"], r["name"]): r["ours"] for r in results}


def inputs(rows, columns):
    return torch.randint(0, config.vocab_size, (rows, columns))


def rows():
    """Section and name of ours, the peer's call, its model and its tokens, tokens of a call."""
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = LlamaForCausalLM(config).to(dtype).eval()
        prompt = inputs(1, 512)
        yield ("prefill to peak", f"{name} 1x512"), prefill, model, prompt, 512
        yield ("decode to read", f"{name} after 512"), decode_after(model, prompt), model, prompt, 1
    model = LlamaForCausalLM(config).train()
    yield ("training step to peak", "f32 1x512"), train, model, inputs(1, 512), 512
    yield ("training step to peak", "f32 4x64"), train, model, inputs(4, 64), 256


measured = list(rows())
best = {only: [0.0, 0.0] for only, *_ in measured}
for _ in range(arguments.turns):
    mine = ours()
    for only, call, model, tokens, n_tokens in measured:
        best[only] = [max(best[only][0], mine[only]), max(best[only][1], rate(call, model, tokens, n_tokens))]
print(f"{arguments.threads} threads, torch {torch.__version__}, tokens a second\n")
print(f"{'':40}{'ours':>10}{'torch':>10}{'ratio':>8}")
for only, (mine, theirs) in best.items():
    print(f"{only[0] + ', ' + only[1]:40}{mine:10.1f}{theirs:10.1f}{mine / theirs:8.2f}")
