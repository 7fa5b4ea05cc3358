// Stands for libjbig, which is GPL and which libtiff calls for TIFF files with JBIG compression: they are an error here,
// and programs that link the bundle's libraries stay free of it. The names are those that libtiff calls.
enum { kNotDecoded = -1 };

void jbg_dec_init(void* state) { (void)state; }
int jbg_dec_in(void* state, const unsigned char* data, unsigned long length, unsigned long* read) {
  (void)state, (void)data, (void)length, (void)read;
  return kNotDecoded;
}
unsigned char* jbg_dec_getimage(const void* state, int plane) {
  (void)state, (void)plane;
  return 0;
}
unsigned long jbg_dec_getsize(const void* state) {
  (void)state;
  return 0;
}
void jbg_dec_free(void* state) { (void)state; }
const char* jbg_strerror(int error) {
  (void)error;
  return "Argosy's bundle does not read JBIG";
}
int jbg_newlen(unsigned char* data, unsigned long length) {
  (void)data, (void)length;
  return kNotDecoded;
}
void jbg_enc_init(void* state, unsigned long width, unsigned long height, int planes, unsigned char** images,
                  void (*write)(unsigned char*, unsigned long, void*), void* file) {
  (void)state, (void)width, (void)height, (void)planes, (void)images, (void)write, (void)file;
}
void jbg_enc_out(void* state) { (void)state; }
void jbg_enc_free(void* state) { (void)state; }
