// The text of docs/job-file.md, made from the declarations that the reader reads through.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "launch/job.h"
#include "launch/key_declarations.h"
#include "src/graph/layer_list.h"

namespace tutti::launch {
namespace {

constexpr std::string_view kIntroduction = R"(# The job file

A job file tells `tutti train` what to do: the data, the models, and how to run them. It is YAML. Every unknown key, wrong
type and impossible value is an error with file, line and the nearest valid key; all errors of a file are told at once,
before anything is trained.

This page is made by `tutti job-file > docs/job-file.md` from the declarations in the code; a test compares the two.

## Example

16 models: twelve small networks over a grid, and one convolutional network with four seeds.

```yaml
run: {out: runs/digits, lanes: auto, memory: 8GiB}
data:
  digits: {train: digits/train-*.h5, test: digits/test-*.h5}
defaults: {data: digits, loss: cross_entropy, batch: 64, epochs: 8, metrics: [accuracy]}
models:
  - name: mlp-w${width}-${optimizer}-lr${lr}
    sweep: {width: [16, 32, 128], optimizer: [adam, sgd], lr: [0.01, 0.003]}
    layers: [flatten, {linear: "${width}"}, relu, {linear: 10}]
    optimizer: {"${optimizer}": {lr: "${lr}"}}
  - name: lenet-s${seed}
    sweep: {seed: [1, 2, 3, 4]}
    layers: [{conv2d: {out: 8, kernel: 5, padding: 2}}, relu, {max_pool2d: 2}, {conv2d: {out: 16, kernel: 5, padding: 2}}, relu, {max_pool2d: 2},
             flatten, {linear: 64}, relu, {dropout: 0.25}, {linear: 10}]
    optimizer: {adamw: {lr: 0.004, weight_decay: 0.01}}
    schedule: {cosine: {warmup_steps: 100}}
    grains: 4
```
)";

constexpr std::string_view kSweeps = R"(
## Sweeps

`sweep:` maps variables to lists of values. A block with a sweep stands for one model per combination, in the order of the
file; the last variable varies fastest. `sample: N` draws N variants at random instead. Then a variable may also be a
distribution:

| distribution | draws |
|---|---|
| `[a, b, c]` or `{choice: [a, b, c]}` | one of the values |
| `{uniform: [low, high]}` | a number between them |
| `{log_uniform: [low, high]}` | a number whose logarithm is uniform |
| `{int: [low, high]}` | a whole number, both ends included |

Drawn numbers are rounded to 6 significant digits. A draw depends on the sample's seed, the variable's name and the draw's
number alone: adding or removing another variable changes nothing.

**A variable named like a key of a model sets that key**, where the block does not: with `sweep: {seed: [1, 2, 3]}` no
`seed: "${seed}"` is needed. It goes before `defaults`, except where the default itself uses the variable.

## Substitution

| written | stands for |
|---|---|
| `"${x}"` alone | the value of variable `x` with its type: number, truth value, text, list or mapping |
| `${x}` inside longer text, or in a key | the value as it is written in the file; a list is joined by `-` |
| `${index}` | the number of the variant in its block, from 0 |
| `${env:NAME}` | an environment variable, anywhere in the file |
| `$${` | the two characters `${` |

Inside `{ }` and `[ ]` YAML needs quotes around `${x}`.

## Settings from the command line

`--set KEY=VALUE` changes the file before it is checked; the value is YAML. Keys are paths: `run.out=runs/second`,
`defaults.batch=128`, `data.digits.held_out=0.1`, `models.0.epochs=5`, `models.lenet-s2.optimizer.adamw.lr=0.002` (a name
as written in the file, or as expanded), `models.*.log_every=1` (all). Later ones go before earlier ones.

## Limits

A file has at most 16 MiB and 1,000,000 values with aliases written out, nested at most 64 deep; a job has at most 10,000
models. Tags (`!!str`) make text; `yes` and `no` are text, not truth values.
)";

/// Text for a cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string default_cell(std::string_view value) {
  if (value == kRequired) return "**required**";
  return value == kNone ? "none" : fmt::format("`{}`", value);
}

std::string key_table(const std::vector<Key>& keys) {
  if (keys.empty()) return "No keys.\n";
  std::string text = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const Key& key : keys) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(key.type.text()), default_cell(key.default_value),
                        cell(key.meaning));
  }
  return text;
}

std::string section(const Block& block) {
  return fmt::format("\n## {}\n\n{}\n\n{}", block.name, block.meaning, key_table(block.keys));
}

std::string methods(std::string_view title, std::string_view meaning, const std::vector<Block>& blocks) {
  std::string text = fmt::format("\n## {}\n\n{}\n", title, meaning);
  for (const Block& block : blocks) {
    text += fmt::format("\n### {}\n\n{}\n\n{}", block.name, block.meaning, key_table(block.keys));
  }
  return text;
}

/// Keys that may differ between a run and its resumption.
std::string free_keys() {
  std::vector<std::string> names;
  for (const Key& key : model_block().keys) {
    const bool expands = key.name == "sweep" || key.name == "sample" || key.name == "name" || key.name == "data";
    if (!key.bit_relevant && !expands) names.push_back("`" + key.name + "`");
  }
  return fmt::format(
      "\nOn `--resume` {} and everything in `run` but `reduction` may differ from the first run, and models may be "
      "added; other changes are refused.\n",
      fmt::join(names, ", "));
}

std::string layers() {
  std::string text =
      "\n## Layers\n\nA layer is a name (`relu`), or a mapping with one key (`{conv2d: {out: 8, kernel: 5}}`). Where a "
      "short "
      "form is given, `{linear: 10}` stands for `{linear: {out: 10}}`. Input sizes follow from the data.\n";
  for (const graph::LayerDeclaration& layer : graph::layer_declarations()) {
    text += fmt::format("\n### {}\n\n{}\n", layer.name, layer.meaning);
    if (!layer.shorthand.empty())
      text += fmt::format("\nShort form: `{}: value` sets `{}`.\n", layer.name, layer.shorthand);
    if (layer.keys.empty()) continue;
    text += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
    for (const graph::LayerKey& key : layer.keys) {
      text += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(key.type),
                          default_cell(key.default_value.empty() ? kRequired : std::string_view(key.default_value)),
                          cell(key.meaning));
    }
  }
  return text;
}

}  // namespace

std::string job_file_documentation() {
  std::string text{kIntroduction};
  for (const Block* block : {&file_block(), &run_block(), &data_block(), &augment_block(), &model_block()})
    text += section(*block);
  text += free_keys();
  text += kSweeps;
  for (const Block* block :
       {&sample_block(), &clip_block(), &parameter_block(), &early_stopping_block(), &checkpoint_block()}) {
    text += section(*block);
  }
  text += methods("Losses",
                  "As a name, `loss: cross_entropy`, or with keys, `loss: {cross_entropy: {label_smoothing: 0.1}}`.",
                  loss_blocks());
  text += methods("Optimizers",
                  "As a name, `optimizer: adam`, or with keys, `optimizer: {adam: {lr: 0.01}}`. Definitions and "
                  "defaults are PyTorch's.",
                  optimizer_blocks());
  text += methods("Schedules",
                  "As a name, `schedule: cosine`, or with keys, `schedule: {cosine: {warmup_steps: 100}}`. Definitions "
                  "are PyTorch's.",
                  schedule_blocks());
  return text + layers();
}

}  // namespace tutti::launch
