// Archives that are damaged or made to do harm: a clear error each, no crash, bounded memory.
#include "src/graph/pt2_archive.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "src/graph/import_pt2.h"
#include "src/graph/number_function.h"
#include "tests/zip_writer.h"

namespace tutti::testing {
namespace {

using data::zip_bytes;
using data::ZipEntry;
using graph::GraphError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

/// A program y = linear(x, weight), as torch.export writes it.
Json linear_program() {
  const auto meta = [](Json sizes, Json strides) {
    return Json{{"dtype", 7},
                {"sizes", sizes},
                {"strides", strides},
                {"requires_grad", true},
                {"device", {{"type", "cpu"}, {"index", nullptr}}},
                {"storage_offset", {{"as_int", 0}}},
                {"layout", 7}};
  };
  const auto tensor = [](const char* name) { return Json{{"as_tensor", {{"name", name}}}}; };
  const Json batch = {
      {"as_expr", {{"expr_str", "Symbol('s7', positive=True, integer=True)"}, {"hint", {{"as_int", 4}}}}}};
  const Json two = {{"as_int", 2}}, one = {{"as_int", 1}};
  Json graph = {{"inputs", {tensor("w"), tensor("x")}},
                {"outputs", {tensor("y")}},
                {"tensor_values", {{"w", meta({two, two}, {two, one})}, {"x", meta({batch, two}, {two, one})}}}};
  graph["nodes"] = {{{"target", "torch.ops.aten.linear.default"},
                     {"name", "the_linear"},
                     {"inputs",
                      {{{"name", "input"}, {"arg", tensor("x")}, {"kind", 1}},
                       {{"name", "weight"}, {"arg", tensor("w")}, {"kind", 1}}}},
                     {"outputs", {tensor("y")}}}};
  Json signature;
  signature["input_specs"] = {{{"parameter", {{"arg", {{"name", "w"}}}, {"parameter_name", "weight"}}}},
                              {{"user_input", {{"arg", tensor("x")}}}}};
  signature["output_specs"] = Json::array({{{"user_output", {{"arg", tensor("y")}}}}});
  return {{"graph_module", {{"graph", graph}, {"signature", signature}}},
          {"schema_version", {{"major", 8}, {"minor", 17}}},
          {"range_constraints", {{"s7", {{"min_val", 0}, {"max_val", nullptr}}}}}};
}

Json weight_config() {
  const Json meta = linear_program()["graph_module"]["graph"]["tensor_values"]["w"];
  return {
      {"config",
       {{"weight", {{"path_name", "weight_0"}, {"is_param", true}, {"use_pickle", false}, {"tensor_meta", meta}}}}}};
}

class Pt2ArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("tutti_" + std::to_string(getpid()) + ".pt2");
    set_program(linear_program());
    set_weights(weight_config());
  }
  void TearDown() override { std::filesystem::remove(file_); }

  void set_program(const Json& program) { program_ = program.dump(); }
  void set_weights(const Json& config) { weights_ = config.dump(); }

  std::vector<ZipEntry> entries() const {
    const float weight[] = {1, 2, 3, 4};
    return {{"m/archive_format", "pt2"},
            {"m/archive_version", "0"},
            {"m/byteorder", "little"},
            {"m/.data/version", "6\n"},
            {"m/data/weights/weight_0", std::string(reinterpret_cast<const char*>(weight), sizeof(weight))},
            {"m/data/weights/model_weights_config.json", weights_},
            {"m/data/constants/model_constants_config.json", R"({"config": {}})"},
            {"m/models/model.json", program_}};
  }

  void write(const std::string& bytes) const { std::ofstream(file_, std::ios::binary) << bytes; }

  /// The error of importing what the file holds; it must name the file.
  std::string error_of_file() const {
    try {
      graph::import_pt2(file_);
    } catch (const GraphError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      return error.what();
    }
    return "no error";
  }
  std::string error_of(const std::vector<ZipEntry>& entries) const {
    write(zip_bytes(entries));
    return error_of_file();
  }
  std::string error_of_program(const Json& program) {
    set_program(program);
    return error_of(entries());
  }

  std::filesystem::path file_;
  std::string program_, weights_;
};

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST_F(Pt2ArchiveTest, ReadsAPlainArchive) {
  write(zip_bytes(entries()));
  const graph::Graph graph = graph::import_pt2(file_).graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].target, "aten::linear");
  EXPECT_EQ(graph.parameters[0].name, "weight");
  EXPECT_TRUE(graph.parameters[0].initial->equal(at::arange(1, 5, at::kFloat).view({2, 2})));
  EXPECT_THAT(graph.values[graph.outputs[0]].shape, ElementsAre(graph::kBatch, 2));
}

TEST_F(Pt2ArchiveTest, RefusesEveryTruncation) {
  const std::string whole = zip_bytes(entries());
  for (size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 16) {
    write(whole.substr(0, bytes));
    EXPECT_THAT(error_of_file(), HasSubstr("torch.export.save")) << bytes << " of " << whole.size() << " bytes";
  }
}

TEST_F(Pt2ArchiveTest, SurvivesEveryFlippedByte) {
  const std::string whole = zip_bytes(entries());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    write(damaged);
    try {
      graph::import_pt2(file_);
    } catch (const GraphError&) {
    }
  }
}

TEST_F(Pt2ArchiveTest, RefusesMembersLargerThanTheFile) {
  std::vector<ZipEntry> bomb = entries();
  bomb[4].claimed_bytes = 0xF0000000;
  const int64_t before = peak_memory_bytes();
  EXPECT_THAT(error_of(bomb), AllOf(HasSubstr("weight_0"), HasSubstr("claims 4026531840 bytes")));
  EXPECT_LT(peak_memory_bytes() - before, int64_t{64} << 20);
}

TEST_F(Pt2ArchiveTest, RefusesCompressedMembersTheVersionToo) {
  for (const size_t member : {size_t{3}, size_t{4}}) {
    std::vector<ZipEntry> list = entries();
    list[member].method = 8;
    EXPECT_THAT(error_of(list), AllOf(HasSubstr(list[member].name), HasSubstr("is compressed, which none")));
    list[member].claimed_bytes = 0x7FFFFFFF;
    EXPECT_THAT(error_of(list), AllOf(HasSubstr(list[member].name), HasSubstr("compressed ones, which cannot be")));
  }
}

TEST_F(Pt2ArchiveTest, RefusesASecondFolder) {
  std::vector<ZipEntry> list = entries();
  list.push_back({"n/byteorder", "big"});
  EXPECT_THAT(error_of(list), AllOf(HasSubstr("in one folder"), HasSubstr("'n/byteorder'")));
}

TEST_F(Pt2ArchiveTest, RefusesNamesThatLeadOut) {
  for (const std::string name : {"/etc/passwd", "m/../../x", "../x", "m\\x", "C:/x"}) {
    std::vector<ZipEntry> list = entries();
    list.push_back({name, "x"});
    EXPECT_THAT(error_of(list), HasSubstr("leads out of the archive")) << name;
  }
}

TEST_F(Pt2ArchiveTest, RefusesDeepNestingOfAHundredMegabytes) {
  std::vector<ZipEntry> list = entries();
  list.back().bytes = std::string(100'000'000, '[');
  const int64_t before = peak_memory_bytes();
  EXPECT_THAT(error_of(list), AllOf(HasSubstr("models/model.json"), HasSubstr("nested deeper than 64 levels")));
  EXPECT_LT(peak_memory_bytes() - before, int64_t{600} << 20);
}

TEST_F(Pt2ArchiveTest, RefusesWideJson) {
  std::vector<ZipEntry> list = entries();
  list.back().bytes = "[";
  for (int i = 0; i < 9'000'000; ++i) list.back().bytes += "0,";
  EXPECT_THAT(error_of(list), HasSubstr("more than 8000000 values"));
}

TEST_F(Pt2ArchiveTest, RefusesWeightsThatDoNotFitTheirFile) {
  struct Change {
    std::string pointer;
    Json value;
  };
  const Json huge = {{"as_int", int64_t{1} << 62}};
  for (const Change& change : {Change{"sizes/0", {{"as_int", 3}}}, Change{"strides/0", {{"as_int", 3}}},
                               Change{"storage_offset", {{"as_int", 1}}}, Change{"sizes/0", huge},
                               Change{"strides/0", huge}, Change{"storage_offset", huge}, Change{"dtype", 8}}) {
    Json config = weight_config();
    config[Json::json_pointer("/config/weight/tensor_meta/" + change.pointer)] = change.value;
    set_weights(config);
    EXPECT_THAT(error_of(entries()), AllOf(HasSubstr("weight_0"), HasSubstr("its file has 16 bytes")))
        << change.pointer;
  }
}

TEST_F(Pt2ArchiveTest, RefusesNegativeSizes) {
  Json config = weight_config();
  config["config"]["weight"]["tensor_meta"]["strides"][0] = {{"as_int", -1}};
  set_weights(config);
  EXPECT_THAT(error_of(entries()), HasSubstr("expected strides to be a count"));
}

TEST_F(Pt2ArchiveTest, ReadsStoragesLargerThanTheTensor) {
  Json config = weight_config();
  config["config"]["weight"]["tensor_meta"]["sizes"] = {{{"as_int", 1}}, {{"as_int", 2}}};
  config["config"]["weight"]["tensor_meta"]["storage_offset"] = {{"as_int", 2}};
  set_weights(config);
  write(zip_bytes(entries()));
  EXPECT_TRUE(graph::Pt2Archive(file_).weights().at(0).tensor.equal(at::arange(3, 5, at::kFloat).view({1, 2})));
}

TEST_F(Pt2ArchiveTest, RefusesPickledWeights) {
  Json config = weight_config();
  config["config"]["weight"]["use_pickle"] = true;
  set_weights(config);
  EXPECT_THAT(error_of(entries()), AllOf(HasSubstr("weight_0"), HasSubstr("pickle")));
}

TEST_F(Pt2ArchiveTest, RefusesOtherSchemaVersions) {
  Json program = linear_program();
  program["schema_version"] = {{"major", 9}, {"minor", 2}};
  EXPECT_THAT(error_of_program(program), HasSubstr("expected an archive of schema version 8.x, found 9.2"));
}

TEST_F(Pt2ArchiveTest, RefusesUnknownOperatorsByNode) {
  Json program = linear_program();
  program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.frobnicate.default";
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("the_linear"), HasSubstr("mylib::frobnicate")));
}

TEST_F(Pt2ArchiveTest, RefusesHigherOrderOperatorsByNode) {
  Json program = linear_program();
  program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.higher_order.cond";
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("the_linear"), HasSubstr("higher_order.cond")));
}

TEST_F(Pt2ArchiveTest, RefusesUnknownKindsOfArgumentsByNode) {
  Json program = linear_program();
  program["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"] = {{"as_custom_obj", {{"name", "o"}}}};
  EXPECT_THAT(error_of_program(program),
              AllOf(HasSubstr("the_linear"), HasSubstr("'weight'"), HasSubstr("'as_custom_obj'")));
}

TEST_F(Pt2ArchiveTest, RefusesArgumentsThatTheOperatorDoesNotHave) {
  Json program = linear_program();
  program["graph_module"]["graph"]["nodes"][0]["inputs"][1]["name"] = "wait";
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("the_linear"), HasSubstr("'weight'")));
}

TEST_F(Pt2ArchiveTest, RefusesValuesThatNobodyMakes) {
  Json program = linear_program();
  program["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = "z";
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("the_linear"), HasSubstr("'z'")));
}

TEST_F(Pt2ArchiveTest, RefusesShapesThatDoNotFitByNode) {
  Json program = linear_program();
  program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][1] = {{"as_int", 3}};
  EXPECT_THAT(error_of_program(program), HasSubstr("the_linear"));
}

TEST_F(Pt2ArchiveTest, RefusesInputsOfNegativeSizes) {
  Json program = linear_program();
  program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][1] = {
      {"as_int", std::numeric_limits<int64_t>::min()}};
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("input 'x'"), HasSubstr("-9223372036854775808")));
}

TEST_F(Pt2ArchiveTest, TakesBatchSizesFromTheRangeOfTheExport) {
  Json program = linear_program();
  Json& range = program["range_constraints"]["s7"];
  range = {{"min_val", 100}, {"max_val", 200}};
  set_program(program);
  write(zip_bytes(entries()));
  EXPECT_THAT(graph::import_pt2(file_).graph.values.back().shape, ElementsAre(graph::kBatch, 2));
  range = {{"min_val", std::numeric_limits<int64_t>::max()}, {"max_val", std::numeric_limits<int64_t>::min()}};
  EXPECT_THAT(error_of_program(program), HasSubstr("expected two at least"));
}

TEST_F(Pt2ArchiveTest, RefusesASecondDynamicDimension) {
  Json program = linear_program();
  Json& sizes = program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"];
  sizes[1] = sizes[0];
  EXPECT_THAT(error_of_program(program), AllOf(HasSubstr("input 'x'"), HasSubstr("dimension 1 is dynamic")));
}

/// A function of numbers, its arguments, and what Python gives for it.
struct NumberCase {
  std::string target;
  std::vector<c10::IValue> arguments;
  c10::IValue expected;
};

TEST(NumberFunctionTest, FollowsPython) {
  const std::vector<NumberCase> cases = {{"_operator::floordiv", {7, 2}, 3},
                                         {"_operator::floordiv", {-7, 2}, -4},
                                         {"_operator::floordiv", {7, -2}, -4},
                                         {"_operator::mod", {-7, 3}, 2},
                                         {"_operator::mod", {7, -3}, -2},
                                         {"_operator::truediv", {3, 2}, 1.5},
                                         {"_operator::pow", {2, 10}, 1024},
                                         {"_operator::pow", {2, -1}, 0.5},
                                         {"_operator::pow", {2, 0.5}, std::sqrt(2.)},
                                         {"_operator::mul", {3, 0.5}, 1.5},
                                         {"_operator::sub", {3, 5}, -2},
                                         {"_operator::neg", {3}, -3},
                                         {"_operator::lt", {3, 5}, true},
                                         {"torch::sym_int", {-2.7}, -2},
                                         {"torch::sym_float", {3}, 3.0},
                                         {"torch::sym_ite", {true, 4, 5}, 4},
                                         {"torch::sym_min", {3, 2}, 2},
                                         {"math::trunc", {2.9}, 2}};
  for (const NumberCase& c : cases) {
    const graph::NumberFunction* function = graph::NumberFunction::find(c.target);
    ASSERT_NE(function, nullptr) << c.target;
    const c10::IValue found = function->compute(c.arguments);
    EXPECT_TRUE(found.tagKind() == c.expected.tagKind() && found == c.expected) << c.target << " gives " << found;
  }
}

TEST(NumberFunctionTest, RefusesWhatHasNoValue) {
  const auto compute = [](const char* target, std::vector<c10::IValue> arguments) {
    return graph::NumberFunction::find(target)->compute(arguments);
  };
  EXPECT_THROW(compute("_operator::floordiv", {1, 0}), std::domain_error);
  EXPECT_THROW(compute("_operator::mul", {int64_t{1} << 62, 4}), std::domain_error);
  EXPECT_THROW(compute("_operator::pow", {10, 30}), std::domain_error);
  EXPECT_THROW(compute("torch::sym_int", {1e300}), std::domain_error);
}

}  // namespace
}  // namespace tutti::testing
