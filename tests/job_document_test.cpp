// The YAML tree of a job file, its limits, and the page made from the declarations.
#include "launch/job_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "launch/job.h"
#include "launch/key_reader.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

/// What is said of a text; empty when it parses.
std::string fault_of(const std::string& text) {
  Faults faults("job.yaml", {});
  parse_document(text, faults);
  try {
    faults.throw_if_any();
  } catch (const JobError& error) {
    return error.what();
  }
  return "";
}

Node scalar(const std::string& yaml) {
  Faults faults("job.yaml", {});
  Node node = parse_document("[" + yaml + "]", faults);
  faults.throw_if_any();
  return node.children.at(0);
}

TEST(DocumentTest, NodesKnowTheirLines) {
  Faults faults("job.yaml", {});
  const Node root = parse_document("a: 1\nb:\n  - x\n  - {c: y,\n     d: z}\n", faults);
  const Node& list = *root.find("b");
  EXPECT_EQ(root.find("a")->place.line, 1);
  EXPECT_EQ(list.key_place.line, 2);
  EXPECT_EQ(list.children[0].place.line, 3);
  EXPECT_EQ(list.children[1].find("d")->place.line, 5);
}

TEST(DocumentTest, ScalarsAreTypedStrictly) {
  EXPECT_EQ(integer_of(scalar("12")), 12);
  EXPECT_EQ(integer_of(scalar("-3")), -3);
  EXPECT_EQ(integer_of(scalar("+3")), 3);
  for (const char* no : {"1.0", "1e3", "'12'", "0x10", "1_000", "twelve", "9223372036854775808", "+-3"}) {
    EXPECT_FALSE(integer_of(scalar(no))) << no;
  }
  EXPECT_EQ(number_of(scalar("1e-3")), 1e-3);
  EXPECT_EQ(number_of(scalar("2")), 2.0);
  for (const char* no : {"'1.0'", "nan", ".inf", "inf", "1.0x", "1e999"}) EXPECT_FALSE(number_of(scalar(no))) << no;
  EXPECT_EQ(boolean_of(scalar("true")), true);
  EXPECT_EQ(boolean_of(scalar("false")), false);
  for (const char* no : {"yes", "on", "True", "1", "'true'"}) EXPECT_FALSE(boolean_of(scalar(no))) << no;
}

TEST(DocumentTest, SizesHaveUnits) {
  EXPECT_EQ(bytes_of(scalar("8GiB")), int64_t{8} << 30);
  EXPECT_EQ(bytes_of(scalar("512MB")), 512'000'000);
  EXPECT_EQ(bytes_of(scalar("1.5 KiB")), 1536);
  EXPECT_EQ(bytes_of(scalar("4096")), 4096);
  for (const char* no : {"8G", "GiB", "-1GiB", "8 apples", "1e30TiB"}) EXPECT_FALSE(bytes_of(scalar(no))) << no;
}

TEST(DocumentTest, AliasesAreWrittenOut) {
  Faults faults("job.yaml", {});
  const Node root = parse_document("{a: &x {k: 1}, b: *x}", faults);
  EXPECT_EQ(json_of(root), nlohmann::json::parse(R"({"a": {"k": 1}, "b": {"k": 1}})"));
}

TEST(DocumentTest, AliasBombIsRefused) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::vector<std::string> aliases(10, fmt::format("*a{}", i - 1));
    text += fmt::format("a{}: &a{} [{}]\n", i, i, fmt::join(aliases, ", "));
  }
  EXPECT_THAT(fault_of(text), HasSubstr("at most 1000000 values with aliases written out"));
}

TEST(DocumentTest, DeepNestingIsRefused) {
  EXPECT_THAT(fault_of(std::string(100, '[') + std::string(100, ']')), HasSubstr("at most 64 levels of nesting"));
}

TEST(DocumentTest, NestingBeyondTheParsersOwnLimitIsRefusedAlike) {
  EXPECT_THAT(fault_of(std::string(100'000, '[')), HasSubstr("job.yaml:1: expected at most 64 levels of nesting"));
}

TEST(DocumentTest, ManyKeysTakeTimeInProportion) {
  const auto least_seconds_of = [](int key_count) {
    std::string text;
    for (int i = 0; i < key_count; ++i) text += fmt::format("k{}: 1\n", i);
    double least = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(fault_of(text), "");
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return least;
  };
  const double few = least_seconds_of(20'000), many = least_seconds_of(200'000);
  EXPECT_LT(many, 40 * few) << "ten times as many keys; where each looked at all before it, a hundred times the time";
}

TEST(DocumentTest, DuplicateKeysAreNamedWithBothLines) {
  EXPECT_EQ(fault_of("a: 1\nb: {c: 1,\n    c: 2}\na: 3\n"),
            "job.yaml:3: duplicate key `c`, first given at job.yaml:2; remove one\n"
            "job.yaml:4: duplicate key `a`, first given at job.yaml:1; remove one");
}

TEST(DocumentTest, WhatIsNotOneDocumentIsNamed) {
  EXPECT_THAT(fault_of("a: 1\n---\nb: 2\n"), HasSubstr("expected one YAML document, found 2"));
  EXPECT_THAT(fault_of("a: [1,\n"), HasSubstr("not YAML"));
  EXPECT_THAT(fault_of("a: *x\n"), HasSubstr("job.yaml:1: not YAML"));
  EXPECT_THAT(fault_of("? [a, b]\n: 1\n"), HasSubstr("expected text as a key"));
}

TEST(DeclarationTest, DefaultsAreValuesOfTheirOwnTypes) {
  std::vector<const Block*> blocks{&file_block(),       &run_block(),   &data_block(),      &augment_block(),
                                   &model_block(),      &clip_block(),  &parameter_block(), &early_stopping_block(),
                                   &checkpoint_block(), &sample_block()};
  for (const auto* list : {&loss_blocks(), &optimizer_blocks(), &schedule_blocks()}) {
    for (const Block& block : *list) blocks.push_back(&block);
  }
  for (const Block* block : blocks) {
    Node node = Node::map({});
    for (const Key& key : block->keys) {
      const bool is_value = key.default_value != kNone && key.default_value != kRequired;
      if (is_value && key.type.kind != ValueType::Kind::kNested) {
        Faults faults("defaults", {});
        node.put(key.name, {}, parse_document(key.default_value, faults));
      }
    }
    Faults faults(block->name, {});
    const KeyReader reader(*block, node, "", faults);
    const size_t missing = faults.added();
    reader.resolved();
    EXPECT_EQ(faults.added(), missing) << block->name;
  }
}

TEST(DocumentationTest, PageIsMadeFromTheDeclarations) {
  const std::filesystem::path page = TUTTI_TEST_DOCS "/job-file.md";
  std::ifstream stream(page);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_TRUE(text == job_file_documentation()) << page << " differs from the declarations; make it anew with\n"
                                                << "  build/bin/tutti job-file > docs/job-file.md";
}

}  // namespace
}  // namespace tutti::launch
