// plugrad export.
#include <plugrad/io/onnx.hpp>
#include <tools/plugrad/commands.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>

#include <iostream>

namespace plugrad::tool {

int export_command(const Arguments& arguments) {
  Options options("plugrad export");
  options.add_text("device", "NAME", "where constants are computed (the default device)");
  options.parse(arguments, 2);
  if (options.flag("help")) {
    options.print_help({"plugrad export FILE MODEL.onnx [--device NAME]",
                        "Writes a saved model, which step.save(FILE) wrote, as an ONNX model of opset 20.",
                        "  plugrad export model.plugrad model.onnx\n"});
    return 0;
  }
  if (options.words().size() != 2)
    throw UsageError("two files are expected: plugrad export FILE MODEL.onnx (see plugrad export --help)");
  const std::optional<std::string> name = options.text("device");
  const std::string &model = options.words()[0], &path = options.words()[1];
  io::export_onnx(model, path, name ? Device(*name) : default_device());
  if (options.flag("json")) std::cout << Json::object({{"model", path}}).pretty() << "\n";
  else std::cout << "the model is in " << path << "\n";
  return 0;
}

}  // namespace plugrad::tool
