//! Addresses and values anywhere in the caller's memory.

use std::ffi::c_void;

use fibula_core::Addr;

use crate::BLOCK;
use crate::error::Outcome;

/// `fibula_batch` of the header.
#[repr(C)]
pub struct Batch {
    addresses: *const c_void,
    address_stride: usize,
    values: *mut c_void,
    value_stride: usize,
    count: usize,
    family: u8,
    value_size: u8,
}

impl Batch {
    /// The size of an address, if all sizes and strides are right.
    fn checked(&self) -> Outcome<usize> {
        let size = match self.family {
            4 => 4,
            6 => 16,
            other => {
                return Err(format!(
                    "the family is {other}, not FIBULA_IPV4 (4) or FIBULA_IPV6 (6)"
                )
                .into());
            }
        };
        if ![4, 8].contains(&self.value_size) {
            return Err(format!("value_size is {}, not 4 or 8", self.value_size).into());
        }
        if self.count > 1 && self.value_stride < self.value_size.into() {
            let (stride, size) = (self.value_stride, self.value_size);
            return Err(format!("value_stride is {stride}, and values have {size} bytes").into());
        }
        let last = self.count.saturating_sub(1);
        let is_inside = |stride: usize| {
            let end = stride.checked_mul(last).and_then(|first| first.checked_add(16));
            end.is_some_and(|end| isize::try_from(end).is_ok())
        };
        if !is_inside(self.address_stride) || !is_inside(self.value_stride) {
            return Err(format!("count is {}, which is beyond all memory", self.count).into());
        }
        Ok(size)
    }

    /// Whether its addresses are of IPv6.
    pub(crate) fn is_v6(&self) -> bool {
        self.family == 6
    }

    /// Looks the addresses up, which are of the family of `A` if there are some.
    ///
    /// # Safety
    /// Addresses and values lie where the batch says, and nobody else uses them.
    ///
    /// # Errors
    /// If a size or stride is wrong.
    pub(crate) unsafe fn each<A: Addr>(
        &self,
        mut lookup: impl FnMut(&[A], &mut [u64]),
    ) -> Outcome<bool> {
        let size = self.checked()?;
        let (mut addresses, mut values) = ([A::MIN; BLOCK], [0; BLOCK]);
        let mut done = 0;
        while done < self.count {
            let count = BLOCK.min(self.count - done);
            for (at, address) in (done..).zip(&mut addresses[..count]) {
                let mut bytes = [0; 16];
                // SAFETY: the address with this number lies there, and `checked` has computed all offsets.
                unsafe {
                    let from = self.addresses.cast::<u8>().add(at * self.address_stride);
                    from.copy_to_nonoverlapping(bytes.as_mut_ptr(), size);
                }
                *address = A::from_be_slice(&bytes[..size]).unwrap_or(A::MIN);
            }
            lookup(&addresses[..count], &mut values[..count]);
            for (at, &value) in (done..).zip(&values[..count]) {
                // SAFETY: the value with this number has its place there, of `value_size` bytes.
                unsafe {
                    let to = self.values.cast::<u8>().add(at * self.value_stride);
                    match self.value_size {
                        8 => to.cast::<u64>().write_unaligned(value),
                        _ => to.cast::<u32>().write_unaligned(value as u32),
                    }
                }
            }
            done += count;
        }
        Ok(true)
    }
}
