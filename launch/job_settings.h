// The `--set KEY=VALUE` options: changes of a job file before it is checked.
#ifndef TUTTI_LAUNCH_JOB_SETTINGS_H
#define TUTTI_LAUNCH_JOB_SETTINGS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job_faults.h"
#include "launch/job_node.h"

namespace tutti::launch {

/// Applies `--set` options in their order. A key is a path of names and indices joined by dots: "run.out",
/// "defaults.batch", "data.digits.train", "models.0.epochs", "models.NAME.optimizer.adam.lr" with a name as written in
/// the file or as expanded, "models.*.epochs". A value is YAML. What is set names the option as its place, so that
/// later checks of unknown keys and types name it too.
class JobSettings {
 public:
  JobSettings(const std::vector<std::string>& settings, Faults& faults);

  /// Everything but models.
  void apply_to_file(Node& root);
  /// A model block, by its index and its name as written.
  void apply_to_block(Node& block, int64_t index, const std::string& written_name);
  /// A variant of a block, by a name that differs from the one written.
  void apply_to_variant(Node& variant, const std::string& name);
  /// Faults for settings that matched no model; `names` are all models'.
  void report_unused(const std::vector<std::string>& names);

 private:
  struct Setting {
    std::string path;
    Node value;
    Place place;
    bool used = false;
  };

  void set(Node& node, std::string_view path, const Setting& setting);
  void apply_to_model(Node& model, std::string_view selector, bool any_key);

  std::vector<Setting> settings_;
  Faults& faults_;
};

}  // namespace tutti::launch

#endif
