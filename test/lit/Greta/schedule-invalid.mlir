// RUN: greta-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{a schedule has no entry 'warps' here, or has it already}}
#s = #greta.schedule<warps = 4>

// -----

// expected-error@+1 {{a schedule has no entry 'waves' here, or has it already}}
#s = #greta.schedule<waves = 4, waves = 4>

// -----

// expected-error@+1 {{a schedule has no entry 'block_size' here, or has it already}}
#s = #greta.schedule<waves = 4, spaces = [{block_size = 4}]>

// -----

// expected-error@+1 {{a schedule has 'waves', or a 'block_size' that is a multiple of its 'wave_size'}}
#s = #greta.schedule<block_size = 96, wave_size = 64>

// -----

// expected-error@+1 {{a schedule has 'waves', or a 'block_size' that is a multiple of its 'wave_size'}}
#s = #greta.schedule<waves = 4, block_size = 64, wave_size = 64>

// -----

// expected-error@+1 {{a schedule has 'waves' -1; it is from 0 to 2^31 - 1}}
#s = #greta.schedule<waves = -1>

// -----

// expected-error@+1 {{a schedule has 'unroll' 0; it is from 1 to 2^31 - 1}}
#s = #greta.schedule<waves = 4, spaces = [{unroll = 0}]>

// -----

// expected-error@+1 {{a schedule has 'depth' 2147483648; it is from 0 to 2^31 - 1}}
#s = #greta.schedule<waves = 4, spaces = [{depth = 2147483648}]>

// -----

// expected-error@+1 {{a space of a schedule has positive 'rows', or none and is 'flat'}}
#s = #greta.schedule<waves = 4, spaces = [{rows = [4, 0]}]>

// -----

// expected-error@+1 {{a space of a schedule has positive 'rows', or none and is 'flat'}}
#s = #greta.schedule<waves = 4, spaces = [{rows = [4], flat}]>

// -----

// expected-error@+1 {{invalid kind of attribute specified}}
#s = #greta.schedule<waves = 4, spaces = [{matrix = 4}]>
