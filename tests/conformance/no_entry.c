/* A shared object that is not a plugin. */
int plugrad_no_entry(void);
int plugrad_no_entry(void) { return 0; }
