// Command lines: values, defaults, and faults that name command and option.
#include "launch/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/command.h"

namespace tutti::launch {
namespace {

CommandLine parsed(const std::vector<std::string>& arguments) {
  using enum OptionKind;
  return {
      {"test",
       "job",
       "a job file",
       "{}",
       {{"job", kText, ""}, {"out,o", kText, ""}, {"set", kTexts, ""}, {"count", kNumber, ""}, {"json", kFlag, ""}}},
      arguments};
}

/// The message of the UsageError that `ask` throws.
template <typename Ask>
std::string fault_of(const Ask& ask) {
  try {
    ask();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no fault";
}

TEST(CommandLine, GivesWhatWasWritten) {
  const CommandLine line = parsed({"job.yaml", "-o", "folder", "--set", "a=1", "--set", "b=2", "--count", "3"});
  EXPECT_EQ(line.text("job"), "job.yaml");
  EXPECT_EQ(line.text("out"), "folder");
  EXPECT_THAT(line.texts("set"), testing::ElementsAre("a=1", "b=2"));
  EXPECT_EQ(line.integer("count", 7, 0), 3);
  EXPECT_FALSE(line.has("json"));
}

TEST(CommandLine, GivesDefaultsForWhatIsAbsent) {
  const CommandLine line = parsed({});
  EXPECT_EQ(line.text("out", "elsewhere"), "elsewhere");
  EXPECT_EQ(line.integer("count", 7, 0), 7);
  EXPECT_TRUE(line.texts("set").empty());
  EXPECT_EQ(line.choice("out", {"auto", "yes"}), 0u);
}

TEST(CommandLine, NamesCommandAndOptionInFaults) {
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(fault_of([] { parsed({"--cuont", "3"}); }), AllOf(HasSubstr("test: "), HasSubstr("--cuont")));
  EXPECT_THAT(fault_of([] { parsed({"--coun", "3"}); }), HasSubstr("--coun"));
  EXPECT_THAT(fault_of([] { parsed({"--count", "three"}); }), HasSubstr("--count"));
  EXPECT_THAT(fault_of([] { parsed({"one", "two"}); }), HasSubstr("test: "));
  EXPECT_THAT(fault_of([] { parsed({}).text("job"); }), HasSubstr("expected a job file, found none"));
  EXPECT_THAT(fault_of([] { parsed({}).text("out"); }), HasSubstr("expected --out, found none"));
  EXPECT_THAT(fault_of([] {
                parsed({"--count", "3"}).integer("count", 7, 4);
              }),
              HasSubstr("--count: expected at least 4, found 3"));
  EXPECT_THAT(fault_of([] {
                parsed({"-o", "no"}).choice("out", {"auto", "yes"});
              }),
              HasSubstr("--out: expected auto or yes, found 'no'"));
}

}  // namespace
}  // namespace tutti::launch
