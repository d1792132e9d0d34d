#include "launch/model_report.h"

namespace tutti::launch {

nlohmann::json report_of(const train::ModelSpec& spec, const train::ModelReport& report) {
  nlohmann::json json = {{"name", spec.name},
                         {"state", train::name_of(report.state)},
                         {"labels", spec.labels},
                         {"epoch", report.epoch},
                         {"step", report.step},
                         {"total_steps", report.total_steps},
                         {"train_loss", report.train_loss}};
  if (!report.reason.empty()) json["reason"] = report.reason;
  if (report.evaluation.is_object()) json.update(report.evaluation);
  return json;
}

}  // namespace tutti::launch
