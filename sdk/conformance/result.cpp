#include <sdk/conformance/result.hpp>

#include <stdexcept>

namespace plugrad::conformance {
namespace {

std::string bytes_of(const MatrixRow& row) {
  std::string bytes = std::to_string(row.question.op->opcode) + " " + std::to_string(row.question.flags) + " ";
  for (const uint8_t dtype : row.question.dtypes) bytes += static_cast<char>(dtype);
  bytes += '\0';
  for (const Cell cell : row.cells) bytes += static_cast<char>(cell);
  return bytes;
}

MatrixRow row_in(const std::string& bytes) {
  const size_t opcode_end = bytes.find(' '), flags_end = bytes.find(' ', opcode_end + 1), end = bytes.size() - kColumns - 1;
  MatrixRow row{{op_info(static_cast<uint32_t>(std::stoul(bytes))), {}, 0}};
  if (!row.question.op || flags_end == bytes.npos || bytes.size() < kColumns + 1)
    throw std::runtime_error("a row is damaged");
  row.question.flags = static_cast<uint32_t>(std::stoul(bytes.substr(opcode_end + 1)));
  for (size_t i = flags_end + 1; i < end; ++i) row.question.dtypes.push_back(static_cast<uint8_t>(bytes[i]));
  for (size_t i = 0; i < kColumns; ++i) row.cells[i] = static_cast<Cell>(bytes[end + 1 + i]);
  return row;
}

// Lists in the fields of a message: the number of items, then the items.
void put(Message& message, const std::vector<std::string>& list) {
  message.fields.push_back(std::to_string(list.size()));
  message.fields.insert(message.fields.end(), list.begin(), list.end());
}

class Fields {
 public:
  explicit Fields(const Message& message) : fields_(message.fields) {}
  const std::string& text() {
    if (at_ == fields_.size()) throw std::runtime_error("a message is cut short");
    return fields_[at_++];
  }
  uint64_t number() { return std::stoull(text()); }
  std::vector<std::string> list() {
    std::vector<std::string> list;
    for (uint64_t left = number(); left > 0; --left) list.push_back(text());
    return list;
  }

 private:
  const std::vector<std::string>& fields_;
  size_t at_ = 0;
};

}  // namespace

Result result_of(const Tally& tally, std::vector<MatrixRow> matrix) {
  Result result{tally.cases(), tally.failures(), tally.declined(), tally.lines(), tally.skips(), std::move(matrix)};
  for (std::string& line : result.lines) line = readable(line);  // a line may quote the plugin
  return result;
}

Message message_of(const Result& result) {
  Message message{Say::result,
                  {std::to_string(result.cases), std::to_string(result.failures), std::to_string(result.declined)}};
  put(message, result.lines);
  put(message, result.skips);
  std::vector<std::string> rows;
  for (const MatrixRow& row : result.matrix) rows.push_back(bytes_of(row));
  put(message, rows);
  return message;
}

Result result_in(const Message& message) {
  Fields fields(message);
  Result result;
  result.cases = fields.number();
  result.failures = fields.number();
  result.declined = fields.number();
  result.lines = fields.list();
  result.skips = fields.list();
  for (const std::string& row : fields.list()) result.matrix.push_back(row_in(row));
  return result;
}

}  // namespace plugrad::conformance
