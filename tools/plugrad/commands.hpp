// The commands of the program. Each takes the words after its name and returns the exit status.
#pragma once
#include <tools/plugrad/options.hpp>

namespace plugrad::tool {

int backends_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int train_command(const Arguments& arguments);
int eval_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int trial_command(const Arguments& arguments);
int advise_command(const Arguments& arguments);
int new_plugin_command(const Arguments& arguments);

}  // namespace plugrad::tool
