// The command line of one command: declared, parsed, and asked for values.
#ifndef TUTTI_LAUNCH_COMMAND_LINE_H
#define TUTTI_LAUNCH_COMMAND_LINE_H

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::launch {

enum class OptionKind { kFlag, kText, kTexts, kNumber };

struct OptionForm {
  std::string name;  ///< "out", or "out,o" with its letter
  OptionKind kind = OptionKind::kFlag;
  std::string meaning;
};

/// What a command says of itself. `{}` in `help` stands for the list of options.
struct CommandForm {
  std::string name;             ///< "show"
  std::string operand;          ///< the option that a word without dashes gives; empty = no such words
  std::string operand_meaning;  ///< "the output folder of a job"
  const char* help = "";
  std::vector<OptionForm> options;  ///< beside --help, which every command has
};

/// A parsed command line. Its faults are UsageErrors that name the command and the option. Options are written out in
/// full; abbreviations are refused, so that an option added later changes no script.
class CommandLine {
 public:
  CommandLine(CommandForm form, const std::vector<std::string>& arguments);

  /// Prints the help when --help was given; then there is nothing else to do.
  bool helped() const;

  bool has(const std::string& option) const { return values_.count(option) > 0; }

  /// The option's text; the second form gives `absent` where the option is, the first throws.
  std::string text(const std::string& option) const;
  std::string text(const std::string& option, const std::string& absent) const;
  /// Of an option that may be repeated (OptionKind::kTexts).
  std::vector<std::string> texts(const std::string& option) const;
  /// Throws where the number is less than `least`.
  int64_t integer(const std::string& option, int64_t absent, int64_t least) const;
  /// The position of the option's value in `choices`; the first when it is absent.
  size_t choice(const std::string& option, const std::vector<std::string>& choices) const;

  /// Throws UsageError: "NAME: MESSAGE".
  [[noreturn]] void refuse(const std::string& message) const;

 private:
  CommandForm form_;
  boost::program_options::options_description declared_;
  boost::program_options::variables_map values_;
};

}  // namespace tutti::launch

#endif
