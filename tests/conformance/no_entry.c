/* A shared object that is no plugin. */
int plugrad_no_entry(void);
int plugrad_no_entry(void) { return 0; }
