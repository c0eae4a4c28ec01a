// CommandLine.h: the ends of every tool's command line. `NAME VERSION` for
// --version; a mistake is one line on stderr and exit status 1.
#ifndef GRETA_TOOLS_COMMAND_LINE_H
#define GRETA_TOOLS_COMMAND_LINE_H

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

// The exit status where the program ends here: --help, --version, a mistake.
inline std::optional<int> parseCommandLine(CLI::App &App, int Count,
                                           char **Arguments) {
  App.set_version_flag("--version", App.get_name() + " " GRETA_VERSION);
  try {
    App.parse(Count, Arguments);
    return std::nullopt;
  } catch (const CLI::Success &End) {
    return App.exit(End);
  } catch (const CLI::ParseError &Mistake) {
    fprintf(stderr, "%s: error: %s\n", App.get_name().c_str(), Mistake.what());
    return 1;
  }
}

#endif
