// CommandLine.h: what the command lines of all tools share. `NAME VERSION` for
// --version; a mistake is one line on stderr and exit status 1, with the name
// that was probably meant.
#ifndef GRETA_TOOLS_COMMAND_LINE_H
#define GRETA_TOOLS_COMMAND_LINE_H

#include <CLI/CLI.hpp>
#include <optional>

// A command line whose --help shows the default of every option that is added.
class CommandLine : public CLI::App {
public:
  CommandLine(const std::string &Description, const std::string &Name);

  // Parses the arguments. Returns the exit status if the program ends here:
  // after --help, --version or a mistake.
  std::optional<int> parseArguments(int Count, char **Arguments);
};

// Check that an option is a finite number, as CLI::Range lets NaN pass: one
// from Least to Most, one that is not negative, one beyond 0.
CLI::Validator numbers(double Least, double Most);
CLI::Validator numbersFrom0();
CLI::Validator positiveNumbers();

#endif
