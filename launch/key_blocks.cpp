// The keys of the job file's blocks: file, run, data, models and what models hold.
#include "launch/key_declarations.h"
#include "launch/key_types.h"

namespace tutti::launch {

using namespace key_types;

namespace {
const std::string kRequiredKey{kRequired};
const std::string kNoDefault{kNone};
}  // namespace

const Block& file_block() {
  static const Block block{
      "The file",
      "One mapping with these keys.",
      {{"run", nested("mapping (run)"), kNoDefault,
        "how this run is done; nothing in it but `reduction` changes a number"},
       {"data", nested("mapping from names to data sets (data)"), kRequiredKey, "the data sets that models name"},
       {"defaults", nested("mapping (model)"), kNoDefault,
        "keys for every model that does not give them itself; a key is taken whole, mappings are not merged"},
       {"models", nested("list of mappings (model)"), kRequiredKey, "the models; one with `sweep` stands for many"}}};
  return block;
}

const Block& run_block() {
  static const Block block{
      "run",
      "How a run is done. Paths are relative to the current folder. Nothing here but `reduction` changes a number.",
      {{"out", text(), kNoDefault, "output folder; required here or as `--out`"},
       {"lanes", or_auto(integer(closed(1, 4096))), "auto",
        "lanes per rank; auto = the CPUs the rank may use, each divided by the ranks on it"},
       {"memory", or_auto(bytes()), "auto",
        "memory per rank; auto = limit of the control group or of Slurm / local ranks"},
       {"deadline", number(closed(0.1, 1e6)), "60", "seconds after which a silent rank is named and the run ends"},
       {"visit", number(closed(0.01, 1e6)), "50", "milliseconds that a lane stays with one model"},
       {"reduction", choice({"exact", "fast"}), "exact",
        "exact = sums in a fixed order, the same bits on any number of ranks; fast = each rank's own part first, "
        "then the parts in a fixed tree over the ranks: fewer bytes on the way, but bits that depend on the placement"},
       {"trace", text(), kNoDefault,
        "file for a timeline in the Chrome trace format: a new one, or an earlier trace, which is replaced"},
       {"progress", number(above(0)), "1", "seconds between two states of the live table"},
       {"measure_memory", boolean(), "false", "sample the memory in use every 5 ms, for the figures in summary.json"}}};
  return block;
}

const Block& data_block() {
  static const Block block{
      "data",
      "One data set: shards made by `tutti shard`. Paths and patterns are relative to the folder of the job file.",
      {{"train", texts(), kRequiredKey, "shards to train on: paths or patterns (`digits/train-*.h5`)"},
       {"validation", texts(), kNoDefault, "shards to validate on"},
       {"test", texts(), kNoDefault, "shards to test on"},
       {"held_out", number(half_open(0, 1)), "0",
        "part of the training rows kept apart for validation; not with `validation`"},
       {"seed", integer(at_least(0)), "0", "seed of the block order and of the held-out rows"},
       {"augment", nested("mapping (augment)"), kNoDefault, "random changes of the training inputs"},
       {"normalise", boolean(), "true", "apply the shards' mean and deviation; false = inputs as stored"},
       {"access", choice({"auto", "map", "pread", "stream"}), "auto",
        "how shards are read; auto = mapped where contiguous and on a local file system"},
       {"window", bytes(), "256MiB",
        "memory that streaming may hold on each rank, apart for each part; shuffled rows need 64 blocks of 4,096 in "
        "it"},
       {"verify_checksums", boolean(), "true", "compare each block of 4,096 rows with its checksum at first touch"}}};
  return block;
}

const Block& augment_block() {
  static const Block block{
      "augment",
      "Random changes of training inputs, a pure function of (model seed, epoch, row).",
      {{"flip", boolean(), "false", "mirror the last dimension with probability 1/2"},
       {"crop", count(0), "0", "pad the last two dimensions by this many zeros, cut out at a random place"},
       {"noise", number(at_least(0)), "0", "standard deviation of Gaussian noise, added after normalisation"}}};
  return block;
}

const Block& model_block() {
  static const Block block{
      "model",
      "One model, or with `sweep` one for each variant. `defaults` takes the same keys but `name`.",
      {{"name", text(), kRequiredKey,
        "unique name: 1 to 128 of A-Z a-z 0-9 . _ -, no dot first; may hold `${variable}`", false},
       {"data", text(), kNoDefault, "name of the data set; not needed when there is only one", false},
       {"input", text(), kNoDefault, "input field; not needed when the data set has only one"},
       {"target", text(), kNoDefault, "target field; not needed when the data set has only one"},
       {"layers", nested("list of layers"), kNoDefault, "the network; or give `zoo` or `graph`"},
       {"zoo", nested("name, or {name: {keys}}"), kNoDefault,
        "a named network alone; its `classes`, if not given, are the target's: `zoo: resnet20`"},
       {"graph", text(), kNoDefault,
        "a network with its weights, exported by PyTorch's torch.export.save: an archive (.pt2), relative to the job "
        "file"},
       {"inputs", texts(), "[]",
        "input fields of `graph`, in the order of its inputs; not needed where they have the inputs' names, or there "
        "is "
        "one of each"},
       {"output", text(), kNoDefault,
        "the output of `graph` that the loss takes, by name or by number from 0; not needed when it has only one"},
       {"loss", nested("name, or {name: {keys}}"), kRequiredKey, "what is minimised, as a mean over the global batch"},
       {"metrics", texts(), "[]", "measured at evaluations besides the loss: accuracy, top5, mae, macro_f1"},
       {"optimizer", nested("name, or {name: {keys}}"), kRequiredKey, "the optimizer"},
       {"schedule", nested("name, or {name: {keys}}"), "constant", "the learning-rate schedule"},
       {"clip", nested("mapping (clip)"), kNoDefault, "gradient clipping"},
       {"parameters", nested("list of mappings (parameters)"), kNoDefault,
        "settings by parameter name; the first rule that matches holds"},
       {"batch", count(1), "32", "rows of one global batch"},
       {"grains", integer(closed(1, 65536)), "1",
        "parts of a batch that lanes and ranks may share, a power of two; batch norm takes its statistics per grain"},
       // Dropout's masks tell a step's batches apart by 16 bits (program::RandomPosition::micro_batch).
       {"accumulate", integer(closed(1, 65536)), "1", "global batches per optimizer step"},
       {"epochs", count(1), "1", "passes over the training rows; with `steps` alone, as many as those need"},
       {"steps", count(1), kNoDefault, "end after this many optimizer steps, if the epochs have more"},
       {"drop_last", boolean(), "false", "skip an epoch's last batch when it is short"},
       {"order", choice({"shuffled", "sequential"}), "shuffled", "order of the training rows; sequential = as stored"},
       {"evaluate_every", count(1), "1", "epochs between evaluations; the last epoch is always evaluated"},
       {"evaluation_batch", count(1), "256", "rows of one evaluation batch"},
       {"log_every", count(0), "0", "steps between lines in metrics.jsonl; 0 = one line per epoch", false},
       {"init", text(), kNoDefault,
        "safetensors file with the first weights, relative to the job file; none = PyTorch's initialisation from the "
        "seed"},
       {"precision", choice({"float32", "float64"}), "float32", "type of parameters and arithmetic"},
       {"engine", choice({"instructions", "island"}), "instructions",
        "island = the whole model by LibTorch's autograd"},
       {"early_stopping", nested("mapping (early_stopping)"), kNoDefault, "end when a metric no longer improves"},
       {"checkpoint", nested("mapping (checkpoint)"), kNoDefault, "when checkpoints are written and which stay", false},
       {"seed", integer(at_least(0)), "0", "seed of first weights, sample order, dropout and augmentation"},
       {"ranks", or_auto(integer(closed(1, 65536))), "auto", "ranks that share the model; auto = the planner's choice",
        false},
       {"sweep", nested("mapping from variables to lists or distributions"), kNoDefault, "makes one model per variant",
        false},
       {"sample", nested("whole number, or mapping (sample)"), kNoDefault,
        "draw this many variants from `sweep` instead of its whole grid", false}}};
  return block;
}

const Block& clip_block() {
  static const Block block{"clip",
                           "Gradient clipping before the optimizer; both may be given, the norm comes first.",
                           {{"norm", number(above(0)), kNoDefault, "greatest L2 norm of the whole gradient"},
                            {"value", number(above(0)), kNoDefault, "greatest absolute value of each element"}}};
  return block;
}

const Block& parameter_block() {
  static const Block block{
      "parameters",
      "One rule for the parameters whose state-dict name matches.",
      {{"match", text(), kRequiredKey,
        "pattern with `*` and `?` (\"*.bias\", \"layers.3.*\"), or `norms` or `biases` for all of that kind"},
       {"frozen", boolean(), "false", "keep the first values"},
       {"lr_factor", number(at_least(0)), kNoDefault, "multiplies the learning rate"},
       {"weight_decay", number(at_least(0)), kNoDefault, "replaces the optimizer's weight decay"}}};
  return block;
}

const Block& early_stopping_block() {
  static const Block block{
      "early_stopping",
      "Ends a model whose metric has not improved. Reads the validation rows, or the test rows where there are none.",
      {{"metric", text(), "loss", "loss, or one of the model's metrics"},
       {"patience", count(1), "5", "evaluations without improvement before the end"},
       {"min_delta", number(at_least(0)), "0", "a smaller change is no improvement"}}};
  return block;
}

const Block& checkpoint_block() {
  static const Block block{"checkpoint",
                           "When a model is saved. 0 turns a cadence off; the end is always saved.",
                           {{"every_steps", count(0), "0", "optimizer steps between checkpoints"},
                            {"every_epochs", count(0), "0", "epochs between checkpoints"},
                            {"every_minutes", number(at_least(0)), "10", "minutes between checkpoints"},
                            {"keep", count(1), "1", "newest checkpoints that stay"},
                            {"best", text(), kNoDefault, "loss or a metric; its best evaluation is kept in `best/`"}}};
  return block;
}

const Block& sample_block() {
  static const Block block{
      "sample",
      "Random draws from a sweep. `sample: 20` stands for `sample: {count: 20}`.",
      {{"count", count(1), kRequiredKey, "how many variants to draw"},
       {"seed", integer(at_least(0)), "0", "seed of the draws; a variable's draws do not depend on other variables"}}};
  return block;
}

}  // namespace tutti::launch
