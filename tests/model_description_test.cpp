// model.yaml: reads back as the settings it was made from.
#include "launch/model_description.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>

#include "launch/text_file.h"

namespace tutti::launch {
namespace {

train::ModelSpec some_model() {
  train::ModelSpec spec;
  spec.name = "mlp-w16";
  spec.labels = {{"width", 16}, {"optimizer", "adam"}};
  spec.source = {{"batch", 64},
                 {"clip", nullptr},
                 {"drop_last", false},
                 {"optimizer", {{"adam", {{"lr", 1e-8}, {"betas", {0.9, 0.999}}}}}},
                 {"layers", {"flatten", {{"linear", 16}}}}};
  spec.python = "class Model: pass\n";
  return spec;
}

TEST(ModelDescription, ReadsBackAsTheSettings) {
  const YAML::Node node = YAML::Load(model_yaml(some_model()));
  EXPECT_EQ(node["name"].as<std::string>(), "mlp-w16");
  EXPECT_EQ(node["labels"]["width"].as<int>(), 16);
  EXPECT_EQ(node["labels"]["optimizer"].as<std::string>(), "adam");
  EXPECT_EQ(node["batch"].as<int>(), 64);
  EXPECT_TRUE(node["clip"].IsNull());
  EXPECT_FALSE(node["drop_last"].as<bool>());
  EXPECT_EQ(node["optimizer"]["adam"]["lr"].as<double>(), 1e-8);
  EXPECT_EQ(node["optimizer"]["adam"]["betas"][1].as<double>(), 0.999);
  EXPECT_EQ(node["layers"][0].as<std::string>(), "flatten");
  EXPECT_EQ(node["layers"][1]["linear"].as<int>(), 16);
}

TEST(ModelDescription, NetworkOfADoubleModelIsDouble) {
  train::ModelSpec spec = some_model();
  spec.double_precision = true;
  EXPECT_EQ(model_py(spec), spec.python + "        self.double()\n");
  spec.double_precision = false;
  EXPECT_EQ(model_py(spec), spec.python);
}

TEST(ModelDescription, WritesBothFilesAndLeavesEqualOnesAlone) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "model_description_test";
  std::filesystem::remove_all(folder);
  write_model_description(folder, some_model());
  EXPECT_EQ(read_text(folder / "model.yaml"), model_yaml(some_model()));
  EXPECT_EQ(read_text(folder / "model.py"), some_model().python);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder / "model.py", long_ago);
  write_model_description(folder, some_model());
  EXPECT_EQ(std::filesystem::last_write_time(folder / "model.py"), long_ago);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti::launch
