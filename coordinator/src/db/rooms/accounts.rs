//! Users, their tokens, invitations and workers.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::people::{ActiveWorkers, ContributorDetail, OperatorAct};

use crate::db::error::Result;
use crate::db::model::{
    ContributorFilter, Contributors, InvitationDraft, InvitationInfo, LogFilter, Principal, Pulse,
    Standing, TokenCounts, TokenDraft, TokenInfo, UserDraft, UserInfo,
};
use crate::tokens::TokenHash;

/// Users, their tokens, invitations and workers.
#[async_trait]
pub trait Accounts {
    /// Creates a user with a first token. The operator log names the actor, unless the user
    /// registers without help and the token may only contribute; so it is with every new token.
    async fn create_user(&self, user: UserDraft, actor: &str, now: Timestamp) -> Result<UserId>;
    /// Gives a user another token.
    async fn add_token(
        &self,
        user: &str,
        token: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// The tokens of a user, as [`tokens_of`](Self::tokens_of) gives them.
    async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>>;
    /// The tokens of a user by number, valid ones first and of these the newest, then revoked ones:
    /// twice as many as may be valid at most.
    async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>>;
    /// One token of a user, also a revoked one.
    async fn token(&self, user: UserId, token: i64) -> Result<Option<TokenInfo>>;
    /// How many tokens of a user are valid, and how many were made after a moment.
    async fn token_counts(&self, user: UserId, since: Timestamp) -> Result<TokenCounts>;
    /// Gives the user of a token another one; answers with its number.
    ///
    /// # Errors
    ///
    /// [`DbError::Revoked`](crate::db::DbError::Revoked) if the token that asks is not good
    /// any more.
    async fn issue_token(&self, by: &Principal, token: TokenDraft, now: Timestamp) -> Result<i64>;
    /// Changes a token of the user of another token, or that one itself, for a new one; answers with
    /// its number.
    ///
    /// # Errors
    ///
    /// As [`issue_token`](Self::issue_token).
    async fn change_token(
        &self,
        by: &Principal,
        old: i64,
        new: TokenDraft,
        now: Timestamp,
    ) -> Result<i64>;
    /// Revokes a token and gives its user another; answers with its number.
    async fn rotate_token(
        &self,
        old: i64,
        new: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64>;
    /// Revokes a token.
    async fn revoke_token(&self, token: i64, actor: &str, now: Timestamp) -> Result<()>;
    /// Creates a user with a first token by an invitation, which then has a use less.
    async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId>;
    /// Keeps an invitation; answers with its number.
    async fn create_invitation(
        &self,
        invitation: InvitationDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64>;
    /// All invitations, oldest first.
    async fn invitations(&self) -> Result<Vec<InvitationInfo>>;
    /// Revokes an invitation.
    async fn revoke_invitation(&self, invitation: i64, actor: &str, now: Timestamp) -> Result<()>;
    /// What operators did, newest first.
    async fn operator_log(&self, filter: LogFilter) -> Result<Vec<OperatorAct>>;
    /// Blocks a user or ends the block; the actor is written to the operator log.
    async fn set_standing(
        &self,
        user: &str,
        standing: Standing,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Gives a user another name.
    ///
    /// # Errors
    ///
    /// If somebody has that name, or one that looks like it.
    async fn rename_user(&self, user: &str, name: &str, actor: &str, now: Timestamp) -> Result<()>;
    /// Deletes a user; answers with the number. Games, chunks and credit stay under a name made of the
    /// number; name, tokens and workers are gone, also from the operator log.
    async fn delete_user(&self, user: &str, actor: &str, now: Timestamp) -> Result<UserId>;
    /// Who a token belongs to, unless it is unknown or revoked. What another process has changed in
    /// the last two seconds may be missing.
    async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>>;
    /// The same as it stands in the ledger now.
    async fn principal_now(&self, token: &TokenHash) -> Result<Option<Principal>>;
    /// All users, by name.
    async fn users(&self) -> Result<Vec<UserInfo>>;
    /// Contributors, and how many there are.
    async fn contributors(&self, filter: ContributorFilter, now: Timestamp)
    -> Result<Contributors>;
    /// The contributor of this name, in a run or, if it is `None`, in all together.
    async fn contributor(
        &self,
        name: &str,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<ContributorDetail>;
    /// How many workers there are, and how many jobs are out.
    async fn pulse(&self, now: Timestamp) -> Result<Pulse>;
    /// Removes some of the workers that were not heard since `before`, and tells how many: 0 if there
    /// are no more. Of each contributor the one that was heard last stays.
    async fn forget_workers(&self, before: Timestamp) -> Result<u64>;
    /// Workers that were heard since `since`, at most `limit` of them one by one.
    async fn workers(&self, since: Timestamp, limit: u32) -> Result<ActiveWorkers>;
}
