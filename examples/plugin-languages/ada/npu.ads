--  A plugrad backend in Ada: an ADD of its own, and the SDK's loops for all other ops.
with System;

package NPU is
   function Entry_Point (Host : System.Address) return System.Address
     with Export, Convention => C, External_Name => "plugrad_backend_v0";
end NPU;
