// The commands for authors of plugins, in a program built without them.
#include <tools/plugrad/commands.hpp>

namespace plugrad::tool {
namespace {
[[noreturn]] int leave_out(const std::string& name) {
  throw std::runtime_error("this program was built without the command " + name +
                           ": configure with -DPLUGRAD_AUTHOR_TOOLS=ON and build it again");
}
}  // namespace

int trial_command(const Arguments&) { leave_out("trial"); }
int advise_command(const Arguments&) { leave_out("advise"); }
int new_plugin_command(const Arguments&) { leave_out("new-plugin"); }

}  // namespace plugrad::tool
