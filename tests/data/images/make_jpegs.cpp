// Writes the JPEGs that Pillow cannot write. Built and run by make.py:
//   make_jpegs RAW_RGB WIDTH HEIGHT FOLDER
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "argosy/image/codecs/libjpeg.h"

int main(int, char** argv) {
  std::ifstream in(argv[1], std::ios::binary);
  std::vector<unsigned char> rgb{std::istreambuf_iterator<char>(in), {}};
  const int width = std::atoi(argv[2]);
  const int height = std::atoi(argv[3]);
  const auto write = [&](const std::string& name,
                         const std::function<void(jpeg_compress_struct&)>& set) {
    jpeg_compress_struct info{};
    jpeg_error_mgr errors{};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    std::FILE* file = std::fopen((std::string(argv[4]) + "/" + name).c_str(), "wb");
    jpeg_stdio_dest(&info, file);
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(height);
    const bool four = name.find("ycck") == 0;
    info.input_components = four ? 4 : 3;
    info.in_color_space = four ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 85, TRUE);
    set(info);
    jpeg_start_compress(&info, TRUE);
    std::vector<unsigned char> row(static_cast<size_t>(width) * 4);
    for (int y = 0; y < height; ++y) {
      const unsigned char* from = rgb.data() + static_cast<size_t>(y) * width * 3;
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          row[x * info.input_components + c] = from[3 * x + c];
        }
        if (four) {
          row[4 * x + 3] = static_cast<unsigned char>(255 - from[3 * x] / 4);
        }
      }
      unsigned char* pointer = row.data();
      jpeg_write_scanlines(&info, &pointer, 1);
    }
    jpeg_finish_compress(&info);
    std::fclose(file);
    jpeg_destroy_compress(&info);
  };
  write("ycck.jpg", [](auto& info) { jpeg_set_colorspace(&info, JCS_YCCK); });
  write("rgb.jpg", [](auto& info) { jpeg_set_colorspace(&info, JCS_RGB); });
  write("411.jpg", [](auto& info) {
    info.comp_info[0].h_samp_factor = 4;
    info.comp_info[0].v_samp_factor = 1;
  });
  write("440.jpg", [](auto& info) {
    info.comp_info[0].h_samp_factor = 1;
    info.comp_info[0].v_samp_factor = 2;
  });
  write("restart.jpg", [](auto& info) { info.restart_interval = 3; });
  write("arithmetic.jpg", [](auto& info) { info.arith_code = TRUE; });
  write("optimized.jpg", [](auto& info) { info.optimize_coding = TRUE; });
}
