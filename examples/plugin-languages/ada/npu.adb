--  The functions need no elaboration and no run-time checks, so nothing of Ada's run-time library is linked.
pragma Suppress (All_Checks);
with Interfaces; use Interfaces;
with Plugrad;    use Plugrad;
with System;     use System;
with System.Storage_Elements; use System.Storage_Elements;

package body NPU is

   type Host_Pointer is access all T_host with Convention => C;
   type Kernel_Pointer is access all T_kernel with Convention => C;
   type Report_Function is access procedure (Host : Address; Status : Integer_32; Reason : Address)
     with Convention => C;

   function Loops_Open (Host, Options, Loops, Info : Address) return Integer_32
     with Import, Convention => C, External_Name => "plugrad_loops_open";
   function Loops_Resolve (Loops, Key : Address) return Address
     with Import, Convention => C, External_Name => "plugrad_loops_resolve";

   type Views is array (0 .. 2) of Address;

   --  With HOST_MEM a buffer is the address of its first byte.
   function Add (Kernel, Stream, Op : Address) return Integer_32 with Convention => C;
   function Add (Kernel, Stream, Op : Address) return Integer_32 is
      Call : T_op with Import, Address => Op;
      All_Views : Views with Import, Address => Call.F_views;
      Target_View : T_view with Import, Address => All_Views (0);
      A_View : T_view with Import, Address => All_Views (1);
      B_View : T_view with Import, Address => All_Views (2);
      type Elements is array (0 .. Target_View.F_count - 1) of Float;
      Target : Elements with Import, Address => Target_View.F_buffer + Storage_Offset (Target_View.F_offset);
      A : Elements with Import, Address => A_View.F_buffer + Storage_Offset (A_View.F_offset);
      B : Elements with Import, Address => B_View.F_buffer + Storage_Offset (B_View.F_offset);
   begin
      for I in Elements'Range loop
         Target (I) := A (I) + B (I);
      end loop;
      return PLUGRAD_OK;
   end Add;

   Own : aliased T_kernel;
   Table : aliased T_backend;
   Layouts : constant Unsigned_64 := Layout_0;
   Name : constant array (0 .. 3) of Unsigned_8 := (97, 100, 97, 0);  --  "ada"
   Version : constant array (0 .. 3) of Unsigned_8 := (48, 46, 49, 0);  --  "0.1"
   No_Device : constant String := "[open] there is one device, ada:0" & ASCII.NUL;

   --  Dense f32 operands; every kernel of an exact op obeys the two flags.
   function Serves (Key : T_signature) return Boolean is
     (Key.F_opcode = PLUGRAD_OP_ADD and then Key.F_outputs = 1 and then Key.F_inputs = 2 and then Key.F_layout = 0
      and then (Key.F_flags and not (PLUGRAD_DETERMINISTIC + PLUGRAD_TF32)) = 0
      and then (for all I in 0 .. 2 => Key.F_dtypes (I) = PLUGRAD_F32));

   function Resolve (Loops, Key : Address) return Address with Convention => C;
   function Resolve (Loops, Key : Address) return Address is
      Signature : T_signature with Import, Address => Key;
   begin
      return (if Serves (Signature) then Own'Address else Loops_Resolve (Loops, Key));
   end Resolve;

   function Count (Host, Devices : Address) return Integer_32 with Convention => C;
   function Count (Host, Devices : Address) return Integer_32 is
      Number : Unsigned_32 with Import, Address => Devices;
   begin
      Number := 1;
      return PLUGRAD_OK;
   end Count;

   function Open (Host : Address; Index : Unsigned_32; Options, Device, Info : Address) return Integer_32
     with Convention => C;
   function Open (Host : Address; Index : Unsigned_32; Options, Device, Info : Address) return Integer_32 is
      The_Host : T_host with Import, Address => Host;
      The_Info : T_device_info with Import, Address => Info;
      Report : Report_Function with Import, Address => The_Host.F_report'Address;
      Status : Integer_32;
   begin
      if Index /= 0 then
         Report (Host, PLUGRAD_INVALID, No_Device'Address);
         return PLUGRAD_INVALID;
      end if;
      Status := Loops_Open (Host, Options, Device, Info);
      if Status = PLUGRAD_OK then
         for I in Name'Range loop
            The_Info.F_name (I) := Name (I);
         end loop;
      end if;
      return Status;
   end Open;

   function Extension (Extension_Name : Address) return Address with Convention => C;
   function Extension (Extension_Name : Address) return Address is (Null_Address);

   --  Fills the table at the first call; later calls write the same values.
   function Entry_Point (Host : Address) return Address is
   begin
      Own := (T_kernel'Size / 8, 0, Add'Address, Null_Address);
      Table.F_struct_size := T_backend'Size / 8;
      Table.F_revision := PLUGRAD_REVISION;
      Table.F_layouts := Layouts'Address;
      Table.F_name := Name'Address;
      Table.F_version := Version'Address;
      Table.F_count := Count'Address;
      Table.F_open := Open'Address;
      Table.F_resolve := Resolve'Address;
      Table.F_get_extension := Extension'Address;
      Table.F_unnamed_use := PLUGRAD_ONLY_BY_NAME;
      return Table'Address;
   end Entry_Point;
end NPU;
