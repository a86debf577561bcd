//! Weights of next hops as a short table.

/// Entries that a group has at most.
pub const MOST: usize = 256;

/// The number of entries of each next hop in the table of its group, for these weights. The total is at most 256, and
/// as small as the exact shares allow. If they are not possible, each share is off by less than 1 / 256 of the
/// packets, and a next hop with a share below half of that may get none.
///
/// ```
/// use fibula_router::control::shares;
/// assert_eq!(shares(&[20, 10]), [2, 1]);
/// assert_eq!(shares(&[1, 0, 1]), [1, 0, 1]);
/// assert_eq!(shares(&[999, 1]), [256, 0]);
/// ```
pub fn shares(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().fold(0, |a, &b| gcd(a, b.into()));
    if divisor == 0 {
        return vec![0; weights.len()];
    }
    let total = weights.iter().map(|&weight| u64::from(weight)).sum::<u64>();
    let most = MOST as u64;
    if total / divisor <= most {
        return weights.iter().map(|&weight| (u64::from(weight) / divisor) as u32).collect();
    }
    // The largest remainders get the shares that rounding down leaves.
    let scaled = |weight: u32| u128::from(weight) * u128::from(most);
    let mut shares: Vec<u32> =
        weights.iter().map(|&weight| (scaled(weight) / u128::from(total)) as u32).collect();
    let left = MOST - shares.iter().sum::<u32>() as usize;
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(scaled(weights[at]) % u128::from(total)), at));
    for at in order.into_iter().take(left) {
        shares[at] += 1;
    }
    shares
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
