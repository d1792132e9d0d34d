// safetensors files: written ones against an independent parser, Python's own, and hostile ones.
#include "src/train/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/stored_tensors.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;
using test::StoredTensors;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  Safetensors() {
    std::string name = (fs::temp_directory_path() / "safetensors_test.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    file_ = folder_ / "tensors.safetensors";
  }
  ~Safetensors() override { fs::remove_all(folder_); }

  std::string file_bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Writes a file with any header and data.
  void write_raw(const std::string& header, const std::string& data) const { write_raw(header.size(), header, data); }
  void write_raw(uint64_t header_bytes, const std::string& header, const std::string& data) const {
    std::ofstream out(file_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
    out << header << data;
  }

  /// The message with which the file is refused.
  std::string refusal() const {
    try {
      StoredTensors{file_};
    } catch (const SafetensorsError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      return error.what();
    }
    return "read without an error";
  }

  fs::path folder_, file_;
};

std::vector<NamedTensor> one_of_each_type() {
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType type : {at::kBool, at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte}) {
    tensors.push_back({std::string("of type ") + c10::toString(type), at::arange(0, 3, at::kDouble).to(type)});
  }
  tensors.push_back({"scalar", at::full({}, 1.5)});
  tensors.push_back({"empty", at::zeros({2, 0, 3})});
  tensors.push_back({"matrix \"quoted\" ü", at::arange(0, 6, at::kFloat).reshape({2, 3})});
  return tensors;
}

TEST_F(Safetensors, GiveBackWhatWasWritten) {
  const std::vector<NamedTensor> tensors = one_of_each_type();
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"step", "12"}};
  write_safetensors(file_, tensors, metadata);
  const StoredTensors found(file_);
  EXPECT_EQ(found.metadata, metadata);
  ASSERT_EQ(found.tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(found.tensors[i].name, tensors[i].name);
    EXPECT_EQ(found.tensors[i].tensor.scalar_type(), tensors[i].tensor.scalar_type()) << tensors[i].name;
    EXPECT_TRUE(at::equal(found.tensors[i].tensor, tensors[i].tensor)) << tensors[i].name;
  }
}

TEST_F(Safetensors, AreFoundByName) {
  write_safetensors(file_, one_of_each_type());
  const SafetensorsFile file(file_);
  ASSERT_NE(file.find("empty"), nullptr);
  EXPECT_EQ(file.find("empty")->shape, (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(file.find("empt"), nullptr);
}

TEST_F(Safetensors, AreConvertedToTheTypeOfTheirDestination) {
  const at::Tensor large = at::arange(0, 300'001, at::kDouble) / 3;  // more than is held of it at once
  std::vector<NamedTensor> tensors = one_of_each_type();
  tensors.push_back({"large", large});
  write_safetensors(file_, tensors);
  const SafetensorsFile file(file_);
  for (const NamedTensor& tensor : tensors) {
    const at::Tensor into = at::full(tensor.tensor.sizes(), -1, at::kFloat);
    file.read(*file.find(tensor.name), into);
    EXPECT_TRUE(at::equal(into, tensor.tensor.to(at::kFloat))) << tensor.name;
  }
}

TEST_F(Safetensors, AreNotReadToWhereTheyDoNotFit) {
  write_safetensors(file_, {{"x", at::ones({2, 3})}});
  const SafetensorsFile file(file_);
  EXPECT_THROW(file.read(*file.find("x"), at::ones({3, 2})), c10::Error);
  EXPECT_THROW(file.read(*file.find("x"), at::ones({3, 2}).t()), c10::Error);
}

TEST_F(Safetensors, KeepEveryBitOfSpecialNumbers) {
  const at::Tensor special =
      at::tensor({-0.0, std::numeric_limits<double>::infinity(), 5e-324, std::bit_cast<double>(0x7ff8000000000123)});
  write_safetensors(file_, {{"x", special}});
  const at::Tensor found = StoredTensors(file_).at("x");
  EXPECT_TRUE(at::equal(found.view(at::kLong), special.view(at::kLong))) << found.view(at::kLong);
}

/// What a reader that knows only the format's description finds in a file: {name: [dtype, shape, data bytes]}.
nlohmann::json parse_independently(const std::string& bytes) {
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i)
    header_bytes = header_bytes * 256 + static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  nlohmann::json found;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<size_t>();
    const auto end = entry["data_offsets"][1].get<size_t>();
    const std::string data = bytes.substr(8 + header_bytes + begin, end - begin);
    found[name] = {entry["dtype"], entry["shape"], std::vector<uint8_t>(data.begin(), data.end())};
  }
  return found;
}

TEST_F(Safetensors, FollowTheFormat) {
  write_safetensors(file_, {{"flags", at::tensor({1, 0, 1}, at::kByte).to(at::kBool)},
                            {"weight", at::tensor({1.0F, -2.0F}).reshape({2, 1})},
                            {"count", at::tensor({int64_t{258}})}});
  const nlohmann::json expected = {
      {"flags", {"BOOL", {3}, {1, 0, 1}}},
      {"weight", {"F32", {2, 1}, {0, 0, 128, 63, 0, 0, 0, 192}}},
      {"count", {"I64", {1}, {2, 1, 0, 0, 0, 0, 0, 0}}},
  };
  EXPECT_EQ(parse_independently(file_bytes()), expected);
}

TEST_F(Safetensors, AlignTheDataAndEachTensor) {
  write_safetensors(file_, one_of_each_type());
  const std::string bytes = file_bytes();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  EXPECT_EQ((8 + header_bytes) % 64, 0U) << header_bytes;
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  const std::map<std::string, int64_t> sizes = {{"F64", 8},  {"I64", 8}, {"F32", 4}, {"I32", 4}, {"F16", 2},
                                                {"BF16", 2}, {"I16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, entry] : header.items()) {
    EXPECT_EQ(entry["data_offsets"][0].get<int64_t>() % sizes.at(entry["dtype"]), 0) << name << " " << entry;
  }
}

TEST_F(Safetensors, HaveTheSameBytesForTheSameInput) {
  write_safetensors(file_, one_of_each_type(), {{"b", "2"}, {"a", "1"}});
  const std::string first = file_bytes();
  write_safetensors(file_, one_of_each_type(), {{"a", "1"}, {"b", "2"}});
  EXPECT_TRUE(file_bytes() == first);
}

TEST_F(Safetensors, OfPythonAreRead) {
  const StoredTensors found(fs::path(TUTTI_TEST_DATA) / "train" / "python.safetensors");
  EXPECT_THAT(found.metadata, testing::ElementsAre(testing::Pair("made", "by safetensors.torch")));
  const at::Tensor range = at::arange(0, 6, at::kDouble).reshape({2, 3}) / 4 - 0.5;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor& tensor = found.at(std::string("float.") + c10::toString(type));
    EXPECT_EQ(tensor.scalar_type(), type);
    EXPECT_TRUE(at::equal(tensor, range.to(type))) << tensor;
  }
  for (const at::ScalarType type : {at::kLong, at::kInt, at::kShort, at::kChar}) {
    const at::Tensor& tensor = found.at(std::string("int.") + c10::toString(type));
    EXPECT_EQ(tensor.scalar_type(), type);
    EXPECT_TRUE(at::equal(tensor, at::arange(-2, 3, type))) << tensor;
  }
  EXPECT_TRUE(at::equal(found.at("bytes"), at::tensor({0, 127, 255}, at::kByte)));
  EXPECT_TRUE(at::equal(found.at("flags"), at::tensor({1, 0}, at::kByte).to(at::kBool)));
  EXPECT_TRUE(at::equal(found.at("scalar"), at::full({}, 7.0)));
  EXPECT_EQ(found.at("empty").sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(found.tensors.size(), 12U);
}

/// A file that must be refused, and what the message must say.
struct Hostile {
  std::string header;
  size_t data_bytes;
  std::string message;
};

TEST_F(Safetensors, HostileHeadersAreRefusedWithTheReason) {
  const std::string f32 = R"("dtype":"F32",)";
  const std::vector<Hostile> cases = {
      {"", 0, "not valid JSON"},
      {"{", 0, "not valid JSON"},
      {"[]", 0, "JSON object"},
      {"\"x\"", 0, "JSON object"},
      {"{\"\xff\":{}}", 0, "not valid JSON"},
      {R"({"x":5})", 0, "'x': expected a JSON object"},
      {R"({"x":{}})", 0, "data_offsets"},
      {R"({"x":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", 4, "found \"F4\""},
      {R"({"x":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4, "'dtype'"},
      {R"({"x":{)" + f32 + R"("shape":[-1],"data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"x":{)" + f32 + R"("shape":[1.5],"data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"x":{)" + f32 + R"("shape":[1e3],"data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"x":{)" + f32 + R"("shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"x":{)" + f32 + R"("shape":"a","data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"x":{)" + f32 + R"("shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "more than 2^63"},
      {R"({"x":{)" + f32 + R"("shape":[2],"data_offsets":[0,4]}})", 4, "need 8 bytes, its data_offsets have 4"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[0,4]}})", 3, "within the 3 bytes of data"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[4,0]}})", 4, "data_offsets"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[0]}})", 4, "data_offsets"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[0,4]}})", 5, "end at byte 4, the data at 5"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[1,5]}})", 5, "belong to no tensor"},
      {R"({"x":{)" + f32 + R"("shape":[2],"data_offsets":[0,8]},"y":{)" + f32 + R"("shape":[1],"data_offsets":[4,8]}})",
       8, "'y' overlaps"},
      {R"({"x":{)" + f32 + R"("shape":[1],"data_offsets":[0,4]},"x":{)" + f32 + R"("shape":[1],"data_offsets":[4,8]}})",
       8, "'x' twice"},
      {R"({"__metadata__":{"a":1}})", 0, "map of strings"},
      {R"({"x":)" + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "nested deeper"},
      {R"({"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1, "neither 0 nor 1"},
  };
  for (const Hostile& hostile : cases) {
    write_raw(hostile.header, std::string(hostile.data_bytes, 'd'));
    EXPECT_THAT(refusal(), HasSubstr(hostile.message)) << hostile.header.substr(0, 100);
  }
}

TEST_F(Safetensors, HostileSizesAreRefusedWithTheReason) {
  write_raw(uint64_t{100}, "{}", "");
  EXPECT_THAT(refusal(), HasSubstr("header of 100 bytes, but the file has only 10"));
  write_raw(~uint64_t{0}, "{}", "");
  EXPECT_THAT(refusal(), HasSubstr("at most 100000000 bytes"));
  std::ofstream(file_) << "1234567";
  EXPECT_THAT(refusal(), HasSubstr("at least 8 bytes, found 7"));
  fs::remove(file_);
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
}

TEST_F(Safetensors, CutAnywhereAreRefused) {
  write_safetensors(file_, {{"a", at::ones({3})}, {"b", at::ones({2}, at::kDouble)}});
  const std::string whole = file_bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(file_, std::ios::binary) << whole.substr(0, size);
    EXPECT_THROW(StoredTensors{file_}, SafetensorsError) << size << " of " << whole.size() << " bytes";
  }
}

TEST_F(Safetensors, ThatCannotBeWrittenSayWhy) {
  const auto message = [&](const std::vector<NamedTensor>& tensors, const fs::path& file) -> std::string {
    try {
      write_safetensors(file, tensors);
    } catch (const SafetensorsError& error) {
      return error.what();
    }
    return "written without an error";
  };
  const at::Tensor x = at::ones({2, 2});
  EXPECT_THAT(message({{"a", x}, {"a", x}}, file_), HasSubstr("'a' is there twice"));
  EXPECT_THAT(message({{"a", x.t()}}, file_), HasSubstr("contiguous"));
  EXPECT_THAT(message({{"a", at::Tensor()}}, file_), HasSubstr("undefined"));
  EXPECT_THAT(message({{"a", x.to(at::kComplexFloat)}}, file_), HasSubstr("ComplexFloat"));
  EXPECT_THAT(message({{"__metadata__", x}}, file_), HasSubstr("reserves"));
  EXPECT_THAT(message({{"\xff", x}}, file_), HasSubstr("UTF-8"));
  EXPECT_THAT(message({{"a", x}}, folder_ / "absent" / "x"), HasSubstr("No such file"));
  EXPECT_THAT(message({{"a", at::ones({100000})}}, "/dev/full"), HasSubstr("No space left"));
}

}  // namespace
}  // namespace tutti::train
