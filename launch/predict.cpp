#include "launch/predict.h"

#include <fmt/format.h>

#include <filesystem>

#include "launch/command.h"
#include "launch/command_line.h"
#include "launch/counted.h"
#include "launch/lane_thread.h"
#include "launch/prediction_file.h"
#include "launch/saved_job.h"
#include "launch/trained_model.h"
#include "src/graph/nearest_name.h"
#include "src/train/unified_network.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHelp = R"(Usage: tutti predict OUT --model NAME --data SHARDS --out FILE [options]

Outputs of a model in the output folder OUT for every row of some shards, in order. Targets are not
needed. FILE.npy: an array [rows, outputs...]. FILE.csv: a line per row; for a classifier with the
class that has the greatest output (an index, and its name where the training data have names).

{}
Example: tutti predict runs/digits --model lenet-s1 --data 'digits/test-*.h5' --out digits.csv
)";

CommandForm form() {
  using enum OptionKind;
  return {"predict",
          "folder",
          "the output folder of a job",
          kHelp,
          {{"folder", kText, "the output folder"},
           {"model,m", kText, "the model"},
           {"data", kTexts, "the shards (may be repeated)"},
           {"out,o", kText, "the file to write: .npy or .csv"},
           {"weights", kText, "final, best or step_N (default: final, else the newest checkpoint)"}}};
}

const train::ModelSpec& chosen_model(const CommandLine& line, const Job& job) {
  const std::string name = line.text("model");
  std::vector<std::string> names;
  for (const train::ModelSpec& model : job.models) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  line.refuse(fmt::format("--model: expected one of {} of the job, found `{}`; did you mean `{}`?",
                          counted(names.size(), "model"), name, graph::nearest_name(name, names)));
}

/// The classes that a classifier's outputs stand for; none when it is none.
std::optional<ClassNames> classes_of(const train::ModelSpec& spec) {
  const auto& output = spec.graph->values[static_cast<size_t>(spec.graph->outputs.front())].shape;
  if (!spec.loss.integer_targets() || output.size() != 2) return std::nullopt;
  for (const data::Field& target : spec.data.train->targets()) {
    if (spec.data.target.empty() || target.name == spec.data.target) return target.class_names;
  }
  return ClassNames{};
}

}  // namespace

int predict_command(const std::vector<std::string>& arguments) {
  const CommandLine line(form(), arguments);
  if (line.helped()) return kDone;
  const fs::path folder = line.text("folder");
  const std::string file = line.text("out");
  if (!line.has("data")) line.refuse("expected --data, found none; `tutti predict --help` shows how");
  const fs::path written_to = fs::path(file).parent_path();
  if (!written_to.empty() && !fs::is_directory(written_to)) {
    line.refuse(fmt::format("--out: expected a file in a folder that exists, found no folder {}; make it first",
                            written_to.string()));
  }
  compute_as_lane();
  const Job job = load_saved_job(folder);
  const train::ModelSpec& spec = chosen_model(line, job);
  const fs::path model_folder = folder / "models" / spec.name;
  const auto weights = find_weights(model_folder, line.text("weights", ""));
  if (!weights) {
    line.refuse(fmt::format("model {}: expected weights{}, found {}", spec.name,
                            line.has("weights") ? " `" + line.text("weights") + "`" : "", known_weights(model_folder)));
  }
  const auto rows = data::DataSet::open(line.texts("data"));
  const auto output = make_prediction_file(file, rows->row_count(), classes_of(spec));
  TrainedModel model(spec, train::Programs().of(spec), *weights);
  model.predict(rows, [&](const at::Tensor& outputs) { output->write(outputs); });
  output->close();
  fmt::print("{}: {} of model {}, weights {}\n", file, counted(rows->row_count(), "row"), spec.name,
             weights->parent_path().filename().string());
  return kDone;
}

}  // namespace tutti::launch
